"""Response curves of every metric with the full budget: 400 studies without a planted fault for each term."""

from __future__ import annotations

import os
import time

from portrayal.lab.curves import curves
from portrayal.lab.curves.tables import SUMMARY, findings, summary


def main() -> None:
    started = time.perf_counter()
    all_curves = curves(workers=os.cpu_count() or 1)
    print(f"  {time.perf_counter() - started:.0f} s on {os.cpu_count()} cores")
    print("  " + " | ".join(SUMMARY))
    for curve, row in zip(all_curves, summary(all_curves), strict=True):
        print("  " + " | ".join(row))
        for finding in findings(curve):
            print(f"      {finding}")

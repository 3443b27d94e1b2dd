"""Run every benchmark, or those named: `python -m benchmarks [NAME ...]`. Figures are printed, not asserted."""

from __future__ import annotations

import importlib
import pkgutil
import platform
import sys

import benchmarks

if __name__ == "__main__":
    every = [
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
    ]
    print(f"Python {platform.python_version()}, {platform.machine()}")
    for name in sys.argv[1:] or every:
        print(f"\n{name}")
        importlib.import_module(f"benchmarks.{name}").main()

"""`python -m portrayal.mitigate --out DIR`: train and examine, where little else is installed; `portrayal mitigate
compare` with the same folder then makes the tables."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from portrayal.errors import PortrayalError
from portrayal.mitigate.compare import run
from portrayal.mitigate.lab_data import lab_comparison
from portrayal.mitigate.settings import MODEL, Choice, world_of
from portrayal.models.device import DEVICES, best_device


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portrayal.mitigate", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--data")
    parser.add_argument("--methods")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--only", help="METHOD:SEED,.. of these; the others are for another call")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        world = world_of(asked.model, asked.data)
        if world is None:
            raise PortrayalError("Data of one's own are learnt from with `portrayal mitigate`.")
        methods = asked.methods.split(",") if asked.methods else None
        comparison = lab_comparison(
            asked.model, world, Choice(methods, asked.seeds, asked.quick, asked.device)
        )
        only = None
        if asked.only:
            pairs = [one.rpartition(":") for one in asked.only.split(",")]
            only = [(name, int(seed)) for name, _, seed in pairs]
        started = time.monotonic()
        for method, seed, _ in run(comparison, asked.out, only, best_device(asked.device)):
            logging.info("%s, seed %s: after %.0f s", method.name, seed, time.monotonic() - started)
    except PortrayalError as error:
        logging.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

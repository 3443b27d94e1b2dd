"""`python -m portrayal.mitigate --out DIR`: train and evaluate models with few dependencies installed.

`portrayal mitigate compare` with the same folder then makes the tables.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from portrayal.errors import PortrayalError
from portrayal.mitigate.compare import run_comparison
from portrayal.mitigate.lab_data import lab_comparison
from portrayal.mitigate.settings import MODEL, ComparisonOptions, training_world
from portrayal.models.device import DEVICES, resolve_device


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portrayal.mitigate", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--data")
    parser.add_argument("--methods")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--only", help="METHOD:SEED,.. to run; the others are left to another call")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        world = training_world(arguments.model, arguments.data)
        if world is None:
            raise PortrayalError(
                "This command trains on the lab's worlds only; for a study, use `portrayal mitigate`."
            )
        methods = arguments.methods.split(",") if arguments.methods else None
        comparison = lab_comparison(
            arguments.model,
            world,
            ComparisonOptions(methods, arguments.seeds, arguments.quick, arguments.device),
        )
        only = None
        if arguments.only:
            pairs = [pair.rpartition(":") for pair in arguments.only.split(",")]
            only = [(name, int(seed)) for name, _, seed in pairs]
        started = time.monotonic()
        for method, seed, _ in run_comparison(
            comparison, arguments.out, only, resolve_device(arguments.device)
        ):
            logging.info("%s, seed %s: after %.0f s", method.name, seed, time.monotonic() - started)
    except PortrayalError as error:
        logging.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

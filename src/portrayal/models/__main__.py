"""`python -m portrayal.models FOLDER`: train the pending tasks of a folder on the best available device."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from portrayal.errors import PortrayalError
from portrayal.models.device import DEVICES, resolve_device
from portrayal.models.text_classifiers.training_queue import run_plan

_N_PROGRESS_LINES = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portrayal.models", description=__doc__)
    parser.add_argument("folder", type=Path, help="The folder given as --cache-dir.")
    parser.add_argument("--device", choices=DEVICES, default="auto", help="By default a GPU if there is one.")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    start_time = time.perf_counter()
    try:
        device = resolve_device(args.device)
        n_done = 0
        for n_done, n_tasks in run_plan(args.folder, device):
            if (
                n_done == n_tasks
                or n_done * _N_PROGRESS_LINES // n_tasks > (n_done - 1) * _N_PROGRESS_LINES // n_tasks
            ):
                logging.info("%s of %s training tasks", n_done, n_tasks)
    except PortrayalError as error:
        logging.error("%s", error)
        return 2
    logging.info("%s training tasks on %s in %.1f s", n_done, device, time.perf_counter() - start_time)
    return 0


if __name__ == "__main__":
    sys.exit(main())

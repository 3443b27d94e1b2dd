"""`python -m portrayal.models FOLDER`: do the trainings that wait in a folder, on the best device there is."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from portrayal.errors import PortrayalError
from portrayal.models.device import DEVICES, best_device
from portrayal.models.text_classifiers.training_queue import carry_out

_LINES = 10  # of progress


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portrayal.models", description=__doc__)
    parser.add_argument("folder", type=Path, help="What was given as --cache-dir.")
    parser.add_argument(
        "--device", choices=DEVICES, default="auto", help="By default a GPU where there is one."
    )
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    started = time.perf_counter()
    try:
        device = best_device(asked.device)
        done = 0
        for done, of in carry_out(asked.folder, device):
            if done == of or done * _LINES // of > (done - 1) * _LINES // of:
                logging.info("%s of %s trainings", done, of)
    except PortrayalError as error:
        logging.error("%s", error)
        return 2
    logging.info("%s trainings on %s in %.1f s", done, device, time.perf_counter() - started)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m portrayal.lab STREAM WORLD --out DIR`: train one of the lab's models, where little else is installed."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from portrayal.errors import PortrayalError
from portrayal.lab.model_training import STREAMS, WORLDS, Lesson, recipe_for, teach
from portrayal.models.device import DEVICES, best_device


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portrayal.lab", description=__doc__)
    parser.add_argument("stream", choices=STREAMS)
    parser.add_argument("world", choices=list(WORLDS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--scenes", type=int, default=Lesson.scenes)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--precision")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)

    def report_progress(done: int, of: int, losses: dict[str, float]) -> None:
        if done % 500 == 0 or done == of:
            logging.info(
                "%s of %s steps: %s",
                done,
                of,
                ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items()),
            )

    try:
        device = best_device(asked.device)
        recipe = recipe_for(
            asked.stream, device, steps=asked.steps, batch_size=asked.batch_size, precision=asked.precision
        )
        card = teach(
            Lesson(asked.stream, asked.world, asked.scenes), asked.out, recipe, device, report_progress
        )
    except PortrayalError as error:
        logging.error("%s", error)
        return 2
    logging.info("%s: %s", card["name"], card["held out"])
    return 0


if __name__ == "__main__":
    sys.exit(main())

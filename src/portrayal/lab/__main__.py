"""`python -m portrayal.lab STREAM WORLD --out DIR`: train one of the lab's models with few dependencies installed."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from portrayal.errors import PortrayalError
from portrayal.lab.model_training import STREAMS, WORLDS, TrainingSpec, recipe_for, train_lab_model
from portrayal.models.device import DEVICES, resolve_device


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portrayal.lab", description=__doc__)
    parser.add_argument("stream", choices=STREAMS)
    parser.add_argument("world", choices=list(WORLDS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--scenes", type=int, default=TrainingSpec.scenes)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--precision")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)

    def report_progress(done: int, total: int, losses: dict[str, float]) -> None:
        if done % 500 == 0 or done == total:
            logging.info(
                "%s of %s steps: %s",
                done,
                total,
                ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items()),
            )

    try:
        device = resolve_device(arguments.device)
        recipe = recipe_for(
            arguments.stream,
            device,
            steps=arguments.steps,
            batch_size=arguments.batch_size,
            precision=arguments.precision,
        )
        card = train_lab_model(
            TrainingSpec(arguments.stream, arguments.world, arguments.scenes),
            arguments.out,
            recipe,
            device,
            report_progress,
        )
    except PortrayalError as error:
        logging.error("%s", error)
        return 2
    logging.info("%s: %s", card["name"], card["held out"])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run by test_lstm.py under Triton's interpreter: a stack of two networks against each of them on a CPU."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import torch

from portrayal.models.text_classifiers.configs import LstmConfig
from portrayal.models.text_classifiers.lstm import batched_networks, kernels, single
from portrayal.models.text_classifiers.tasks import ClassificationTask, TaskPredictions
from tests.models.synthetic_tasks import task

CONFIG = LstmConfig(epochs=1, batch_size=8, learning_rate=1e-2, dropout=0.0, precision="float32")


def stacked_predictions(
    tasks: list[ClassificationTask], config: LstmConfig, explain: int = 0
) -> list[TaskPredictions]:
    lstm_stack = batched_networks.LstmStack(tasks, config, torch.device("cpu"))
    lstm_stack.train()
    return lstm_stack.predictions(explain)


def main() -> None:
    torch.set_num_threads(1)
    # The interpreter takes as long for a large block as for a small one, and long for every position of a
    # caption.
    kernels._BLOCK, batched_networks._MAX_BATCH = 1 << 19, 64
    tasks = [task(7, captions=13, tested=3, longest=3), task(8, captions=13, tested=3, longest=3, words=40)]
    errors = {"proba": 0.0, "attributions": 0.0, "size of proba": 0.0, "size of attributions": 0.0}
    for training_task, predictions in zip(tasks, stacked_predictions(tasks, CONFIG, 2), strict=True):
        expected = single.fit_predict(training_task, CONFIG, 2)
        assert expected.attributions is not None
        assert predictions.attributions is not None
        errors["proba"] = max(errors["proba"], float(np.abs(predictions.proba - expected.proba).max()))
        errors["attributions"] = max(
            errors["attributions"], float(np.abs(predictions.attributions - expected.attributions).max())
        )
        errors["size of proba"] = float(np.ptp(expected.proba[:, 1]))
        errors["size of attributions"] = float(np.abs(expected.attributions).max())
    with_dropout = replace(CONFIG, dropout=0.5)
    joint_predictions, single_prediction = (
        stacked_predictions(tasks, with_dropout)[1],
        stacked_predictions(tasks[1:], with_dropout)[0],
    )
    errors["alone"] = float(np.abs(joint_predictions.proba - single_prediction.proba).max())
    errors["without dropout"] = float(
        np.abs(joint_predictions.proba - single.fit_predict(tasks[1], CONFIG, 0).proba).max()
    )
    sys.stdout.write(json.dumps(errors))


if __name__ == "__main__":
    main()

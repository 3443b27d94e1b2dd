"""Run by test_lstm.py under Triton's interpreter: a stack of two networks against each of them on a processor."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import torch

from portrayal.models.text_classifiers.lstm import kernels, single, stack
from portrayal.models.text_classifiers.schedules import Lstm
from portrayal.models.text_classifiers.tasks import Answer, Task
from tests.models.made_up import task

HOW = Lstm(epochs=1, batch=8, rate=1e-2, dropout=0.0, precision="float32")


def stacked(tasks: list[Task], how: Lstm, explain: int = 0) -> list[Answer]:
    made = stack.Stack(tasks, how, torch.device("cpu"))
    made.train()
    return made.answers(explain)


def main() -> None:
    torch.set_num_threads(1)
    # The interpreter takes as long for a large block as for a small one, and long for every place of a caption.
    kernels._BLOCK, stack._AT_ONCE = 1 << 19, 64
    tasks = [task(7, captions=13, tested=3, longest=3), task(8, captions=13, tested=3, longest=3, words=40)]
    found = {"likely": 0.0, "parts": 0.0, "size of likely": 0.0, "size of parts": 0.0}
    for one, answer in zip(tasks, stacked(tasks, HOW, 2), strict=True):
        expected = single.answer(one, HOW, 2)
        assert expected.parts is not None
        assert answer.parts is not None
        found["likely"] = max(found["likely"], float(np.abs(answer.likely - expected.likely).max()))
        found["parts"] = max(found["parts"], float(np.abs(answer.parts - expected.parts).max()))
        found["size of likely"] = float(np.ptp(expected.likely[:, 1]))
        found["size of parts"] = float(np.abs(expected.parts).max())
    noisy = replace(HOW, dropout=0.5)
    both, alone = stacked(tasks, noisy)[1], stacked(tasks[1:], noisy)[0]
    found["alone"] = float(np.abs(both.likely - alone.likely).max())
    found["without dropout"] = float(np.abs(both.likely - single.answer(tasks[1], HOW, 0).likely).max())
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

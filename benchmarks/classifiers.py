"""The neural classifiers of LIC, from plain arrays: `python -m benchmarks.classifiers [PLAN] [--only lstm|bert]`.

PLAN is what `portrayal score lic ... --device deferred --cache-dir FOLDER` writes; without it captions are made up, as
many and as long as those of the published gender data. Nothing but PyTorch and Transformers is needed, and a GPU is
used if there is one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from portrayal.models.device import best_device
from portrayal.models.text_classifiers.lstm import train
from portrayal.models.text_classifiers.schedules import FINE_TUNED, Lstm
from portrayal.models.text_classifiers.tasks import FIRST, Task, Texts
from portrayal.models.text_classifiers.training_queue import read_plan

SEEDS = (0, 12, 100, 200, 300, 400, 456, 500, 789, 1234)
_STEPS = 40  # of the plain network, from which a whole training is reckoned
_TOKENS = 30_522  # of bert-base-uncased


def made_up(systems: int = 5, captions: int = 6_628, words: int = 800) -> list[Task]:
    """Ten seeds of some systems: captions of 8 to 16 words, the more common ones more often."""
    chance = np.random.default_rng(0)
    tasks = []
    for _ in range(systems):
        often = 1 / np.arange(1, words + 1)
        said = [
            chance.choice(words, size=length, p=often / often.sum())
            for length in chance.integers(8, 17, captions)
        ]
        texts = Texts.of([[f"w{word}" for word in caption] for caption in said])
        group = chance.integers(0, 2, captions)
        for seed in SEEDS:
            order = np.random.default_rng(seed).permutation(captions)
            tasks.append(Task(texts, group, 2, order[662:], order[:662], np.ones(2), seed))
    return tasks


class Plain(nn.Module):
    """The published network as it is written in a few lines, one by one, in full precision."""

    def __init__(self, words: int):
        super().__init__()
        self.embedding = nn.Embedding(words, 100, padding_idx=0)
        self.lstm = nn.LSTM(100, 256, num_layers=2, bidirectional=True, dropout=0.5)
        self.output = nn.Linear(512, 1)
        self.dropout = nn.Dropout(0.5)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.embedding(tokens)), lengths, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)
        return self.output(self.dropout(torch.cat((last[-2], last[-1]), dim=1)))[:, 0]


def plain_steps(task: Task, device: str, steps: int) -> None:
    """Some steps of training the plain network."""
    network = Plain(FIRST + len(task.texts.words)).to(device)
    learner = torch.optim.Adam(network.parameters(), lr=5e-5)
    batches = [batch[batch >= 0] for batch in task.batches(64, 0)]
    for number in range(steps):
        places = batches[number % len(batches)]
        lengths = task.texts.lengths[places]
        tokens = torch.from_numpy(task.texts.table[places, : lengths.max()].T.copy()).to(device)
        target = torch.from_numpy(task.group[places]).float().to(device)
        learner.zero_grad()
        found = network(tokens, torch.from_numpy(lengths))
        nn.functional.binary_cross_entropy_with_logits(found, target).backward()
        learner.step_size()
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def lstm(tasks: list[Task], device: str) -> None:
    clock = time.process_time if device == "cpu" else time.perf_counter
    kind = "CPU-seconds" if device == "cpu" else "seconds"
    torch.set_num_threads(1)
    plain_steps(tasks[0], device, 5)
    step = seconds(lambda: plain_steps(tasks[0], device, _STEPS), clock) / _STEPS
    steps = sum(20 * len(task.batches(64, 0)) for task in tasks)
    print(
        f"  plain network, one by one: {step * 1000:.1f} ms a step, so {step * steps:,.0f} {kind} for {len(tasks)}"
    )
    if device == "cpu":
        one = replace(tasks[0], test=tasks[0].test[:64])
        theirs = step * 20 * len(one.batches(64, 0))
        for short in (
            replace(Lstm(), epochs=2, precision=precision) for precision in ("bfloat16", "float32")
        ):
            started = clock()
            list(train([one], short))
            took = (clock() - started) / short.epochs * 20
            print(
                f"  a training in {short.precision}: {took:.0f} {kind}; plain {theirs:.0f}; ratio {theirs / took:.2f}"
            )
        return
    list(train(tasks[:2], replace(Lstm(), epochs=1), device=device))  # kernels are compiled
    took = seconds(lambda: list(train(tasks, Lstm(), device=device)), clock)
    print(f"  {len(tasks)} trainings side by side: {took:.1f} s; ratio {step * steps / took:.1f}")


def bert(tasks: list[Task], device: str) -> None:
    """The shape of bert-base with random weights: what it costs, not what it finds."""
    from transformers import BertConfig, BertModel

    from portrayal.models.text_classifiers.encoder import train as fine_tune

    words = sorted({word for task in tasks for word in task.texts.words})
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(word for word in words if word.isalnum())]
    names = list(dict.fromkeys([*names, *(f"unused{number}" for number in range(_TOKENS))]))[:_TOKENS]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("\n".join(names) + "\n")
        (Path(folder) / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
        BertModel(BertConfig()).save_pretrained(folder)
        schedule = replace(FINE_TUNED, model=folder)
        took = seconds(lambda: list(fine_tune(tasks, schedule, device=device)))
    size = sum(part.numel() for part in BertModel(BertConfig()).parameters())
    print(
        f"  bert-ft, {size / 1e6:.0f} million random weights: {len(tasks)} trainings of {len(tasks[0].train):,} "
        f"captions in {took:.1f} s, {took / len(tasks):.2f} s each"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classifiers", description=__doc__)
    parser.add_argument("plan", nargs="?", type=Path)
    parser.add_argument("--only", choices=("lstm", "bert"))
    asked = parser.parse_args([] if arguments is None else arguments)
    device = best_device()
    tasks = made_up() if asked.plan is None else read_plan(asked.plan)[0]
    where = torch.cuda.get_device_name() if device == "cuda" else "processor, one thread"
    most = max(len(task.train) for task in tasks)
    print(f"  PyTorch {torch.__version__}, {where}; {len(tasks)} trainings of up to {most:,} captions")
    if asked.only != "bert":
        lstm(tasks, device)
    if asked.only != "lstm" and device == "cuda":
        bert([task for task in tasks if len(task.train) == most], device)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])

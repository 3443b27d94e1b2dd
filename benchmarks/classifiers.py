"""The neural classifiers of LIC, from plain arrays: `python -m benchmarks.classifiers [PLAN] [--only
lstm|bert]`.

PLAN is what `portrayal score lic ... --device deferred --cache-dir FOLDER` writes. Without it captions are
random, as many and as long as those of the published gender data. Needs nothing but PyTorch and Transformers,
and uses a GPU if there is one.
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

from portrayal.models.device import resolve_device
from portrayal.models.text_classifiers.configs import FINE_TUNED, LstmConfig
from portrayal.models.text_classifiers.lstm import train
from portrayal.models.text_classifiers.tasks import FIRST_WORD, ClassificationTask, Texts
from portrayal.models.text_classifiers.training_queue import read_plan

SEEDS = (0, 12, 100, 200, 300, 400, 456, 500, 789, 1234)
_STEPS = 40  # of the plain network, from which a whole training is extrapolated
_TOKENS = 30_522  # of bert-base-uncased


def synthetic_tasks(systems: int = 5, captions: int = 6_628, words: int = 800) -> list[ClassificationTask]:
    """Tasks of ten seeds for each system: captions of 8 to 16 words, with Zipf-like frequencies."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(systems):
        p = 1 / np.arange(1, words + 1)
        samples = [rng.choice(words, size=length, p=p / p.sum()) for length in rng.integers(8, 17, captions)]
        texts = Texts.encode([[f"w{word}" for word in caption] for caption in samples])
        group = rng.integers(0, 2, captions)
        for seed in SEEDS:
            order = np.random.default_rng(seed).permutation(captions)
            tasks.append(ClassificationTask(texts, group, 2, order[662:], order[:662], np.ones(2), seed))
    return tasks


class PlainNetwork(nn.Module):
    """The published network in a few lines, trained one by one in full precision."""

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
        _, (hidden, _) = self.lstm(packed)
        return self.output(self.dropout(torch.cat((hidden[-2], hidden[-1]), dim=1)))[:, 0]


def plain_steps(task: ClassificationTask, device: str, steps: int) -> None:
    """Train the plain network for some steps."""
    network = PlainNetwork(FIRST_WORD + len(task.texts.words)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-5)
    batches = [batch[batch >= 0] for batch in task.batches(64, 0)]
    for number in range(steps):
        indices = batches[number % len(batches)]
        lengths = task.texts.lengths[indices]
        tokens = torch.from_numpy(task.texts.table[indices, : lengths.max()].T.copy()).to(device)
        target = torch.from_numpy(task.group_index[indices]).float().to(device)
        optimizer.zero_grad()
        logits = network(tokens, torch.from_numpy(lengths))
        nn.functional.binary_cross_entropy_with_logits(logits, target).backward()
        optimizer.step()
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def lstm(tasks: list[ClassificationTask], device: str) -> None:
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
        small = replace(tasks[0], test_indices=tasks[0].test_indices[:64])
        seconds_plain = step * 20 * len(small.batches(64, 0))
        for config in (
            replace(LstmConfig(), epochs=2, precision=precision) for precision in ("bfloat16", "float32")
        ):
            started = clock()
            list(train([small], config))
            elapsed = (clock() - started) / config.epochs * 20
            print(
                f"  a training in {config.precision}: {elapsed:.0f} {kind}; "
                f"plain {seconds_plain:.0f}; ratio {seconds_plain / elapsed:.2f}"
            )
        return
    list(train(tasks[:2], replace(LstmConfig(), epochs=1), device=device))  # compiles the kernels
    elapsed = seconds(lambda: list(train(tasks, LstmConfig(), device=device)), clock)
    print(f"  {len(tasks)} trainings side by side: {elapsed:.1f} s; ratio {step * steps / elapsed:.1f}")


def bert(tasks: list[ClassificationTask], device: str) -> None:
    """bert-base with random weights: only the run time is meaningful."""
    from transformers import BertConfig, BertModel

    from portrayal.models.text_classifiers.encoder import train as fine_tune

    words = sorted({word for task in tasks for word in task.texts.words})
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(word for word in words if word.isalnum())]
    names = list(dict.fromkeys([*names, *(f"unused{number}" for number in range(_TOKENS))]))[:_TOKENS]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("\n".join(names) + "\n")
        (Path(folder) / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
        BertModel(BertConfig()).save_pretrained(folder)
        config = replace(FINE_TUNED, model=folder)
        elapsed = seconds(lambda: list(fine_tune(tasks, config, device=device)))
    size = sum(parameter.numel() for parameter in BertModel(BertConfig()).parameters())
    print(
        f"  bert-ft, {size / 1e6:.0f} M random weights: {len(tasks)} trainings of {len(tasks[0].train_indices):,} "
        f"captions in {elapsed:.1f} s, {elapsed / len(tasks):.2f} s each"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classifiers", description=__doc__)
    parser.add_argument("plan", nargs="?", type=Path)
    parser.add_argument("--only", choices=("lstm", "bert"))
    args = parser.parse_args([] if arguments is None else arguments)
    device = resolve_device()
    tasks = synthetic_tasks() if args.plan is None else read_plan(args.plan)[0]
    device_name = torch.cuda.get_device_name() if device == "cuda" else "processor, one thread"
    largest = max(len(task.train_indices) for task in tasks)
    print(
        f"  PyTorch {torch.__version__}, {device_name}; {len(tasks)} trainings of up to {largest:,} captions"
    )
    if args.only != "bert":
        lstm(tasks, device)
    if args.only != "lstm" and device == "cuda":
        bert([task for task in tasks if len(task.train_indices) == largest], device)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])

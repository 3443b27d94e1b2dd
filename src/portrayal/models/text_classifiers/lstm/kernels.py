"""The arithmetic of a stack of LSTMs for a GPU, in Triton.

One launch does one step of every network and both directions, matrix product and all that follows it together, so that
weights are read once and nothing in between is written. What is left out by chance is drawn from the network's own seed
and drawn again on the way back, so that it depends on nothing a network is stacked with.

States of both directions are held at the place of the word they follow: (networks, places, captions, 2, hidden). A
caption that is shorter than the batch keeps its state once it has ended; read backwards it has none before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from portrayal.models.text_classifiers.lstm.network import HIDDEN

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's, as published
ROWS = 64  # captions of a batch are a multiple of this
_COLUMNS, _DEEP = 64, 64
_WORDS, _WIDE = 64, 128
_BLOCK = 1024


@dataclass
class Weights:
    """One array of every network: what is learnt, in full and as matrix products read it, and Adam's two memories."""

    full: Tensor
    low: Tensor
    mean: Tensor
    square: Tensor
    pace: float = 1.0  # of its steps

    @classmethod
    def of(cls, full: Tensor, precision: torch.dtype, pace: float = 1.0) -> Weights:
        low = full if precision == full.dtype else full.to(precision)
        return cls(full, low, torch.zeros_like(full), torch.zeros_like(full), pace)


@dataclass(frozen=True)
class Dropout:
    """What is left out by chance in one step."""

    share: float
    seeds: Tensor  # of each network
    step: int


def _key(dropout: Dropout | None, site: int) -> tuple[int, float]:
    return (0, 0.0) if dropout is None else (dropout.step * 4 + site, dropout.share)


@triton.jit
def _kept(seeds, network, key, offsets, share):
    drawn = tl.rand(tl.load(seeds + network) * 16777216 + key, offsets)
    return tl.where(drawn >= share, 1.0 / (1.0 - share), 0.0)


@triton.jit(do_not_specialize=["count", "key"])
def _keep(out, seeds, count, key, share, BLOCK: tl.constexpr):
    network = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + network * count + at, _kept(seeds, network, key, at, share), mask=at < count)


def keep(dropout: Dropout, like: Tensor) -> Tensor:
    out = torch.empty(like.shape, device=like.device)
    count = out[0].numel()
    key, share = _key(dropout, 2)
    _keep[len(out), triton.cdiv(count, _BLOCK)](out, dropout.seeds, count, key, share, BLOCK=_BLOCK)
    return out


@triton.jit(do_not_specialize=["count", "words", "key"])
def _embed(
    table, tokens, out, seeds, count, words, key, share,
    WIDTH: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDE)
    inside = (rows < count)[:, None] & (columns < WIDTH)[None, :]
    code = tl.load(tokens + network * count + rows, mask=rows < count, other=0)
    found = tl.load(
        table + (network * words + code)[:, None] * WIDTH + columns[None, :], mask=inside, other=0.0
    )
    if DROP:
        found = found * _kept(seeds, network, key, rows[:, None] * WIDTH + columns[None, :], share)
    tl.store(out + (network * count + rows)[:, None] * WIDTH + columns[None, :], found, mask=inside)


def embed(table: Weights, tokens: Tensor, dropout: Dropout | None) -> Tensor:
    networks, places, captions = tokens.shape
    width = table.low.shape[2]
    out = table.low.new_empty(networks, places, captions, width)
    count = places * captions
    key, share = _key(dropout, 0)
    seeds = tokens if dropout is None else dropout.seeds
    _embed[networks, triton.cdiv(count, ROWS)](
        table.low, tokens, out, seeds, count, table.low.shape[1], key, share,
        WIDTH=width, WIDE=_WIDE, ROWS=ROWS, DROP=dropout is not None,
    )  # fmt: skip
    return out


@triton.jit
def _adam(full, low, mean, square, at, gradient, inside, rate, first, second, fix_first, fix_second, tiny):
    kept_mean = first * tl.load(mean + at, mask=inside, other=0.0) + (1 - first) * gradient
    kept_square = second * tl.load(square + at, mask=inside, other=0.0) + (1 - second) * gradient * gradient
    step = (kept_mean / fix_first) / (tl.sqrt(kept_square / fix_second) + tiny)
    new = tl.load(full + at, mask=inside, other=0.0) - rate * step
    tl.store(mean + at, kept_mean, mask=inside)
    tl.store(square + at, kept_square, mask=inside)
    tl.store(full + at, new, mask=inside)
    tl.store(low + at, new, mask=inside)


@triton.jit
def _learn(
    full, low, mean, square, gradient, size, rate, first, second, fix_first, fix_second, tiny,
    BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    found = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32)
    _adam(full, low, mean, square, at, found, inside, rate, first, second, fix_first, fix_second, tiny)


def learn(weights: Weights, gradient: Tensor, rate: float, count: int) -> None:
    size = weights.full.numel()
    gradient = gradient.contiguous()
    first, second = BETAS
    _learn[(triton.cdiv(size, _BLOCK),)](
        weights.full, weights.low, weights.mean, weights.square, gradient, size, rate * weights.pace,
        first, second, 1 - first**count, 1 - second**count, EPSILON, BLOCK=_BLOCK,
    )  # fmt: skip


@triton.jit(do_not_specialize=["count", "words", "key"])
def _learn_table(
    full, low, mean, square, tokens, back, seeds, count, words, key, share,
    rate, first, second, fix_first, fix_second, tiny,
    WIDTH: tl.constexpr, WIDE: tl.constexpr, WORDS: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    # A word's gradient is the sum over the places where it stands. As a matrix product its order is fixed, where atomic
    # additions would come in another order every time.
    network = tl.program_id(0).to(tl.int64)
    mine = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    columns = tl.arange(0, WIDE)
    gradient = tl.zeros((WORDS, WIDE), tl.float32)
    for start in range(0, count, ROWS):
        rows = start + tl.arange(0, ROWS)
        code = tl.load(tokens + network * count + rows, mask=rows < count, other=0)
        here = (mine[:, None] == code[None, :]) & (code > 0)[None, :]
        at = rows[:, None] * WIDTH + columns[None, :]
        some = tl.load(
            back + network * count * WIDTH + at,
            mask=(rows < count)[:, None] & (columns < WIDTH)[None, :],
            other=0.0,
        )
        if DROP:
            some = (some * _kept(seeds, network, key, at, share)).to(some.dtype)
        gradient = tl.dot(here.to(some.dtype), some, gradient)
    inside = (mine < words)[:, None] & (columns < WIDTH)[None, :]
    at = (network * words + mine)[:, None] * WIDTH + columns[None, :]
    _adam(full, low, mean, square, at, gradient, inside, rate, first, second, fix_first, fix_second, tiny)


def learn_table(
    table: Weights, tokens: Tensor, back: Tensor, dropout: Dropout | None, rate: float, count: int
) -> None:
    networks, words, width = table.full.shape
    places = tokens.shape[1] * tokens.shape[2]
    key, share = _key(dropout, 0)
    seeds = tokens if dropout is None else dropout.seeds
    first, second = BETAS
    _learn_table[networks, triton.cdiv(words, _WORDS)](
        table.full, table.low, table.mean, table.square, tokens, back, seeds, places, words, key, share,
        rate * table.pace, first, second, 1 - first**count, 1 - second**count, EPSILON,
        WIDTH=width, WIDE=_WIDE, WORDS=_WORDS, ROWS=ROWS, DROP=dropout is not None, num_warps=8,
    )  # fmt: skip


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit(do_not_specialize=["number", "places", "key"])
def _read(
    gates, recurrent, states, memories, shown, lengths, seeds, number, places, captions, key, share,
    HIDDEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEEP: tl.constexpr,
    BEGIN: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    both = tl.program_id(0).to(tl.int64)
    network, way = both // 2, both % 2
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    place = tl.where(way == 0, number, places - 1 - number)
    before = tl.where(way == 0, place - 1, place + 1)
    here = ((network * places + place) * captions + rows) * 2 + way
    last = ((network * places + before) * captions + rows) * 2 + way
    gate = gates + here[:, None] * (4 * HIDDEN) + columns[None, :]
    enter = tl.load(gate).to(tl.float32)
    keep = tl.load(gate + HIDDEN).to(tl.float32)
    new = tl.load(gate + 2 * HIDDEN).to(tl.float32)
    show = tl.load(gate + 3 * HIDDEN).to(tl.float32)
    old_memory = tl.zeros((ROWS, COLUMNS), tl.float32)
    old_state = tl.zeros((ROWS, COLUMNS), tl.float32)
    if not BEGIN:
        for start in range(0, HIDDEN, DEEP):
            deep = start + tl.arange(0, DEEP)
            state = tl.load(states + last[:, None] * HIDDEN + deep[None, :])
            weight = recurrent + (both * 4 * HIDDEN + columns)[None, :] * HIDDEN + deep[:, None]
            enter = tl.dot(state, tl.load(weight), enter)
            keep = tl.dot(state, tl.load(weight + HIDDEN * HIDDEN), keep)
            new = tl.dot(state, tl.load(weight + 2 * HIDDEN * HIDDEN), new)
            show = tl.dot(state, tl.load(weight + 3 * HIDDEN * HIDDEN), show)
        old_memory = tl.load(memories + last[:, None] * HIDDEN + columns[None, :])
        old_state = tl.load(states + last[:, None] * HIDDEN + columns[None, :]).to(tl.float32)
    enter, keep, new, show = tl.sigmoid(enter), tl.sigmoid(keep), _tanh(new), tl.sigmoid(show)
    memory = keep * old_memory + enter * new
    state = show * _tanh(memory)
    there = (tl.load(lengths + network * captions + rows) > place)[:, None]
    memory = tl.where(there, memory, old_memory)
    state = tl.where(there, state, old_state)
    tl.store(gate, enter)
    tl.store(gate + HIDDEN, keep)
    tl.store(gate + 2 * HIDDEN, new)
    tl.store(gate + 3 * HIDDEN, show)
    at = here[:, None] * HIDDEN + columns[None, :]
    tl.store(memories + at, memory)
    tl.store(states + at, state)
    if DROP:
        offset = ((place * captions + rows) * 2 + way)[:, None] * HIDDEN + columns[None, :]
        tl.store(shown + at, state * _kept(seeds, network, key, offset.to(tl.int32), share))


def read(
    gates: Tensor, recurrent: Weights, lengths: Tensor, dropout: Dropout | None
) -> tuple[Tensor, Tensor, Tensor]:
    networks, places, captions = gates.shape[:3]
    states = gates.new_empty(networks, places, captions, 2, HIDDEN)
    memories = torch.empty_like(states, dtype=torch.float32)
    shown = states if dropout is None else torch.empty_like(states)
    key, share = _key(dropout, 1)
    grid = (2 * networks, HIDDEN // _COLUMNS, captions // ROWS)
    for number in range(places):
        _read[grid](
            gates, recurrent.low, states, memories, shown, lengths, lengths if dropout is None else dropout.seeds,
            number, places, captions, key, share,
            HIDDEN=HIDDEN, ROWS=ROWS, COLUMNS=_COLUMNS, DEEP=_DEEP,
            BEGIN=number == 0, DROP=dropout is not None, num_warps=8,
        )  # fmt: skip
    return states, memories, shown


@triton.jit(do_not_specialize=["number", "places", "key"])
def _unread(
    gates, recurrent, memories, above, to_state, to_memory, lengths, seeds, number, places, captions, key, share,
    HIDDEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEEP: tl.constexpr,
    BEGIN: tl.constexpr, END: tl.constexpr, ABOVE: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    both = tl.program_id(0).to(tl.int64)
    network, way = both // 2, both % 2
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    place = tl.where(way == 0, number, places - 1 - number)
    before = tl.where(way == 0, place - 1, place + 1)
    after = tl.where(way == 0, place + 1, place - 1)
    here = ((network * places + place) * captions + rows) * 2 + way
    last = ((network * places + before) * captions + rows) * 2 + way
    next = ((network * places + after) * captions + rows) * 2 + way
    held = (both * captions + rows)[:, None] * HIDDEN + columns[None, :]
    at = here[:, None] * HIDDEN + columns[None, :]
    back = tl.load(to_state + held)
    if ABOVE:
        found = tl.load(above + at).to(tl.float32)
        if DROP:
            offset = ((place * captions + rows) * 2 + way)[:, None] * HIDDEN + columns[None, :]
            found = found * _kept(seeds, network, key, offset.to(tl.int32), share)
        back += found
    if not END:
        for start in range(0, 4 * HIDDEN, DEEP):
            deep = start + tl.arange(0, DEEP)
            said = tl.load(gates + next[:, None] * (4 * HIDDEN) + deep[None, :])
            weight = tl.load(recurrent + (both * 4 * HIDDEN + deep)[:, None] * HIDDEN + columns[None, :])
            back = tl.dot(said, weight, back)
    gate = gates + here[:, None] * (4 * HIDDEN) + columns[None, :]
    enter = tl.load(gate).to(tl.float32)
    keep = tl.load(gate + HIDDEN).to(tl.float32)
    new = tl.load(gate + 2 * HIDDEN).to(tl.float32)
    show = tl.load(gate + 3 * HIDDEN).to(tl.float32)
    bent = _tanh(tl.load(memories + at))
    old_memory = tl.zeros((ROWS, COLUMNS), tl.float32)
    if not BEGIN:
        old_memory = tl.load(memories + last[:, None] * HIDDEN + columns[None, :])
    carried = tl.load(to_memory + held)
    memory = carried + back * show * (1 - bent * bent)
    there = (tl.load(lengths + network * captions + rows) > place)[:, None]
    tl.store(gate, tl.where(there, memory * new * enter * (1 - enter), 0.0))
    tl.store(gate + HIDDEN, tl.where(there, memory * old_memory * keep * (1 - keep), 0.0))
    tl.store(gate + 2 * HIDDEN, tl.where(there, memory * enter * (1 - new * new), 0.0))
    tl.store(gate + 3 * HIDDEN, tl.where(there, back * bent * show * (1 - show), 0.0))
    tl.store(to_memory + held, tl.where(there, memory * keep, carried))
    tl.store(to_state + held, tl.where(there, 0.0, back))


def unread(
    gates: Tensor,
    memories: Tensor,
    recurrent: Weights,
    lengths: Tensor,
    above: Tensor | None,
    last: Tensor | None,
    dropout: Dropout | None,
) -> Tensor:
    networks, places, captions = gates.shape[:3]
    shape = (networks, 2, captions, HIDDEN)
    to_memory = torch.zeros(shape, device=gates.device)
    to_state = torch.zeros(shape, device=gates.device) if last is None else last.contiguous().clone()
    key, share = _key(dropout, 1)
    grid = (2 * networks, HIDDEN // _COLUMNS, captions // ROWS)
    for number in reversed(range(places)):
        _unread[grid](
            gates, recurrent.low, memories, gates if above is None else above, to_state, to_memory, lengths,
            lengths if dropout is None else dropout.seeds, number, places, captions, key, share,
            HIDDEN=HIDDEN, ROWS=ROWS, COLUMNS=_COLUMNS, DEEP=_DEEP, BEGIN=number == 0, END=number == places - 1,
            ABOVE=above is not None, DROP=dropout is not None, num_warps=8,
        )  # fmt: skip
    return gates

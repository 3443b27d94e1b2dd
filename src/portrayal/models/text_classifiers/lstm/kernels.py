"""Triton kernels for a stack of LSTMs on a GPU.

One launch does one time step of every network in both directions. The matrix product and the gate functions
are fused, so that weights are read once and intermediate values are not written. Dropout masks are drawn from
each network's seed and redrawn in the backward pass, so that a network does not depend on the others in its
stack.

States of both directions are stored at the position of their word: (networks, positions, captions, 2,
hidden). A caption shorter than the batch keeps its state after its end; in the reverse direction its state is
0 before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from portrayal.models.text_classifiers.lstm.network import HIDDEN_SIZE

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam, as published
ROWS = 64  # batches are padded to a multiple of this many captions
_COLUMN_BLOCK, _DEPTH_BLOCK = 64, 64
_WORD_BLOCK, _PADDED_WIDTH = 64, 128
_BLOCK = 1024


@dataclass
class StackedWeights:
    """One parameter of every network: master weights, their low-precision copy, and Adam's two moments."""

    full: Tensor
    low: Tensor
    first_moment: Tensor
    second_moment: Tensor
    lr_scale: float = 1.0  # factor on the learning rate

    @classmethod
    def from_tensor(cls, full: Tensor, precision: torch.dtype, lr_scale: float = 1.0) -> StackedWeights:
        low = full if precision == full.dtype else full.to(precision)
        return cls(full, low, torch.zeros_like(full), torch.zeros_like(full), lr_scale)


@dataclass(frozen=True)
class StepDropout:
    """Dropout of one training step."""

    rate: float
    seeds: Tensor  # of each network
    step: int


def _dropout_key(dropout: StepDropout | None, site: int) -> tuple[int, float]:
    return (0, 0.0) if dropout is None else (dropout.step * 4 + site, dropout.rate)


@triton.jit
def _dropout_scale(seeds, network, key, offsets, rate):
    uniform = tl.rand(tl.load(seeds + network) * 16777216 + key, offsets)
    return tl.where(uniform >= rate, 1.0 / (1.0 - rate), 0.0)


@triton.jit(do_not_specialize=["count", "key"])
def _dropout_mask_kernel(out, seeds, count, key, rate, BLOCK: tl.constexpr):
    network = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(
        out + network * count + offsets,
        _dropout_scale(seeds, network, key, offsets, rate),
        mask=offsets < count,
    )


def dropout_mask(dropout: StepDropout, like: Tensor) -> Tensor:
    out = torch.empty(like.shape, device=like.device)
    count = out[0].numel()
    key, rate = _dropout_key(dropout, 2)
    _dropout_mask_kernel[len(out), triton.cdiv(count, _BLOCK)](
        out, dropout.seeds, count, key, rate, BLOCK=_BLOCK
    )
    return out


@triton.jit(do_not_specialize=["count", "words", "key"])
def _embed_kernel(
    table, tokens, out, seeds, count, words, key, drop_rate,
    WIDTH: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDE)
    inside = (rows < count)[:, None] & (columns < WIDTH)[None, :]
    code = tl.load(tokens + network * count + rows, mask=rows < count, other=0)
    embedded = tl.load(
        table + (network * words + code)[:, None] * WIDTH + columns[None, :], mask=inside, other=0.0
    )
    if DROP:
        embedded = embedded * _dropout_scale(
            seeds, network, key, rows[:, None] * WIDTH + columns[None, :], drop_rate
        )
    tl.store(out + (network * count + rows)[:, None] * WIDTH + columns[None, :], embedded, mask=inside)


def embed(table: StackedWeights, tokens: Tensor, dropout: StepDropout | None) -> Tensor:
    networks, positions, captions = tokens.shape
    width = table.low.shape[2]
    out = table.low.new_empty(networks, positions, captions, width)
    count = positions * captions
    key, drop_rate = _dropout_key(dropout, 0)
    seeds = tokens if dropout is None else dropout.seeds
    _embed_kernel[networks, triton.cdiv(count, ROWS)](
        table.low, tokens, out, seeds, count, table.low.shape[1], key, drop_rate,
        WIDTH=width, WIDE=_PADDED_WIDTH, ROWS=ROWS, DROP=dropout is not None,
    )  # fmt: skip
    return out


@triton.jit
def _adam_update(
    full, low, mean, square, offsets, gradient, inside, rate, first, second, fix_first, fix_second, tiny
):
    kept_mean = first * tl.load(mean + offsets, mask=inside, other=0.0) + (1 - first) * gradient
    kept_square = (
        second * tl.load(square + offsets, mask=inside, other=0.0) + (1 - second) * gradient * gradient
    )
    step = (kept_mean / fix_first) / (tl.sqrt(kept_square / fix_second) + tiny)
    new = tl.load(full + offsets, mask=inside, other=0.0) - rate * step
    tl.store(mean + offsets, kept_mean, mask=inside)
    tl.store(square + offsets, kept_square, mask=inside)
    tl.store(full + offsets, new, mask=inside)
    tl.store(low + offsets, new, mask=inside)


@triton.jit
def _adam_step_kernel(
    full, low, mean, square, gradient, size, rate, first, second, fix_first, fix_second, tiny,
    BLOCK: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    gradient_block = tl.load(gradient + offsets, mask=inside, other=0.0).to(tl.float32)
    _adam_update(
        full,
        low,
        mean,
        square,
        offsets,
        gradient_block,
        inside,
        rate,
        first,
        second,
        fix_first,
        fix_second,
        tiny,
    )


def adam_step(weights: StackedWeights, gradient: Tensor, rate: float, count: int) -> None:
    size = weights.full.numel()
    gradient = gradient.contiguous()
    first, second = BETAS
    _adam_step_kernel[(triton.cdiv(size, _BLOCK),)](
        weights.full, weights.low, weights.first_moment, weights.second_moment, gradient, size, rate * weights.lr_scale,
        first, second, 1 - first**count, 1 - second**count, EPSILON, BLOCK=_BLOCK,
    )  # fmt: skip


@triton.jit(do_not_specialize=["count", "words", "key"])
def _adam_step_embedding_kernel(
    full, low, mean, square, tokens, back, seeds, count, words, key, drop_rate,
    rate, first, second, fix_first, fix_second, tiny,
    WIDTH: tl.constexpr, WIDE: tl.constexpr, WORDS: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    # The gradient of an embedding is a sum over the positions of its word. A matrix product adds in a fixed
    # order; atomic additions would come in another order each time.
    network = tl.program_id(0).to(tl.int64)
    block_words = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    columns = tl.arange(0, WIDE)
    gradient = tl.zeros((WORDS, WIDE), tl.float32)
    for start in range(0, count, ROWS):
        rows = start + tl.arange(0, ROWS)
        code = tl.load(tokens + network * count + rows, mask=rows < count, other=0)
        is_word = (block_words[:, None] == code[None, :]) & (code > 0)[None, :]
        offsets = rows[:, None] * WIDTH + columns[None, :]
        gradient_block = tl.load(
            back + network * count * WIDTH + offsets,
            mask=(rows < count)[:, None] & (columns < WIDTH)[None, :],
            other=0.0,
        )
        if DROP:
            gradient_block = (gradient_block * _dropout_scale(seeds, network, key, offsets, drop_rate)).to(
                gradient_block.dtype
            )
        gradient = tl.dot(is_word.to(gradient_block.dtype), gradient_block, gradient)
    inside = (block_words < words)[:, None] & (columns < WIDTH)[None, :]
    offsets = (network * words + block_words)[:, None] * WIDTH + columns[None, :]
    _adam_update(
        full, low, mean, square, offsets, gradient, inside, rate, first, second, fix_first, fix_second, tiny
    )


def adam_step_embedding(
    table: StackedWeights,
    tokens: Tensor,
    gradient: Tensor,
    dropout: StepDropout | None,
    rate: float,
    count: int,
) -> None:
    networks, words, width = table.full.shape
    positions = tokens.shape[1] * tokens.shape[2]
    key, drop_rate = _dropout_key(dropout, 0)
    seeds = tokens if dropout is None else dropout.seeds
    first, second = BETAS
    _adam_step_embedding_kernel[networks, triton.cdiv(words, _WORD_BLOCK)](
        table.full, table.low, table.first_moment, table.second_moment, tokens, gradient, seeds,
        positions, words, key, drop_rate, rate * table.lr_scale,
        first, second, 1 - first**count, 1 - second**count, EPSILON,
        WIDTH=width, WIDE=_PADDED_WIDTH, WORDS=_WORD_BLOCK, ROWS=ROWS, DROP=dropout is not None, num_warps=8,
    )  # fmt: skip


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit(do_not_specialize=["step", "positions", "key"])
def _lstm_forward_kernel(
    gates, recurrent, states, cells, dropped, lengths, seeds, step, positions, captions, key, rate,
    HIDDEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEEP: tl.constexpr,
    BEGIN: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    network_direction = tl.program_id(0).to(tl.int64)
    network, direction = network_direction // 2, network_direction % 2
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    position = tl.where(direction == 0, step, positions - 1 - step)
    previous = tl.where(direction == 0, position - 1, position + 1)
    row = ((network * positions + position) * captions + rows) * 2 + direction
    previous_row = ((network * positions + previous) * captions + rows) * 2 + direction
    gate = gates + row[:, None] * (4 * HIDDEN) + columns[None, :]
    input_gate = tl.load(gate).to(tl.float32)
    forget_gate = tl.load(gate + HIDDEN).to(tl.float32)
    candidate = tl.load(gate + 2 * HIDDEN).to(tl.float32)
    output_gate = tl.load(gate + 3 * HIDDEN).to(tl.float32)
    old_cell = tl.zeros((ROWS, COLUMNS), tl.float32)
    old_state = tl.zeros((ROWS, COLUMNS), tl.float32)
    if not BEGIN:
        for start in range(0, HIDDEN, DEEP):
            deep = start + tl.arange(0, DEEP)
            state = tl.load(states + previous_row[:, None] * HIDDEN + deep[None, :])
            weight = recurrent + (network_direction * 4 * HIDDEN + columns)[None, :] * HIDDEN + deep[:, None]
            input_gate = tl.dot(state, tl.load(weight), input_gate)
            forget_gate = tl.dot(state, tl.load(weight + HIDDEN * HIDDEN), forget_gate)
            candidate = tl.dot(state, tl.load(weight + 2 * HIDDEN * HIDDEN), candidate)
            output_gate = tl.dot(state, tl.load(weight + 3 * HIDDEN * HIDDEN), output_gate)
        old_cell = tl.load(cells + previous_row[:, None] * HIDDEN + columns[None, :])
        old_state = tl.load(states + previous_row[:, None] * HIDDEN + columns[None, :]).to(tl.float32)
    input_gate, forget_gate, candidate, output_gate = (
        tl.sigmoid(input_gate),
        tl.sigmoid(forget_gate),
        _tanh(candidate),
        tl.sigmoid(output_gate),
    )
    cell = forget_gate * old_cell + input_gate * candidate
    state = output_gate * _tanh(cell)
    active = (tl.load(lengths + network * captions + rows) > position)[:, None]
    cell = tl.where(active, cell, old_cell)
    state = tl.where(active, state, old_state)
    tl.store(gate, input_gate)
    tl.store(gate + HIDDEN, forget_gate)
    tl.store(gate + 2 * HIDDEN, candidate)
    tl.store(gate + 3 * HIDDEN, output_gate)
    offsets = row[:, None] * HIDDEN + columns[None, :]
    tl.store(cells + offsets, cell)
    tl.store(states + offsets, state)
    if DROP:
        offset = ((position * captions + rows) * 2 + direction)[:, None] * HIDDEN + columns[None, :]
        tl.store(dropped + offsets, state * _dropout_scale(seeds, network, key, offset.to(tl.int32), rate))


def lstm_forward(
    gates: Tensor, recurrent: StackedWeights, lengths: Tensor, dropout: StepDropout | None
) -> tuple[Tensor, Tensor, Tensor]:
    networks, positions, captions = gates.shape[:3]
    states = gates.new_empty(networks, positions, captions, 2, HIDDEN_SIZE)
    cells = torch.empty_like(states, dtype=torch.float32)
    dropped = states if dropout is None else torch.empty_like(states)
    key, rate = _dropout_key(dropout, 1)
    grid = (2 * networks, HIDDEN_SIZE // _COLUMN_BLOCK, captions // ROWS)
    for step in range(positions):
        _lstm_forward_kernel[grid](
            gates, recurrent.low, states, cells, dropped, lengths, lengths if dropout is None else dropout.seeds,
            step, positions, captions, key, rate,
            HIDDEN=HIDDEN_SIZE, ROWS=ROWS, COLUMNS=_COLUMN_BLOCK, DEEP=_DEPTH_BLOCK,
            BEGIN=step == 0, DROP=dropout is not None, num_warps=8,
        )  # fmt: skip
    return states, cells, dropped


@triton.jit(do_not_specialize=["step", "positions", "key"])
def _lstm_backward_kernel(
    gates, recurrent, cells, above, carried_to_state, carried_to_cell, lengths, seeds,
    step, positions, captions, key, rate,
    HIDDEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEEP: tl.constexpr,
    BEGIN: tl.constexpr, END: tl.constexpr, ABOVE: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    network_direction = tl.program_id(0).to(tl.int64)
    network, direction = network_direction // 2, network_direction % 2
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    position = tl.where(direction == 0, step, positions - 1 - step)
    previous = tl.where(direction == 0, position - 1, position + 1)
    following = tl.where(direction == 0, position + 1, position - 1)
    row = ((network * positions + position) * captions + rows) * 2 + direction
    previous_row = ((network * positions + previous) * captions + rows) * 2 + direction
    next_row = ((network * positions + following) * captions + rows) * 2 + direction
    state_offsets = (network_direction * captions + rows)[:, None] * HIDDEN + columns[None, :]
    offsets = row[:, None] * HIDDEN + columns[None, :]
    state_gradient = tl.load(carried_to_state + state_offsets)
    if ABOVE:
        above_gradient = tl.load(above + offsets).to(tl.float32)
        if DROP:
            offset = ((position * captions + rows) * 2 + direction)[:, None] * HIDDEN + columns[None, :]
            above_gradient = above_gradient * _dropout_scale(seeds, network, key, offset.to(tl.int32), rate)
        state_gradient += above_gradient
    if not END:
        for start in range(0, 4 * HIDDEN, DEEP):
            deep = start + tl.arange(0, DEEP)
            gate_gradient = tl.load(gates + next_row[:, None] * (4 * HIDDEN) + deep[None, :])
            weight = tl.load(
                recurrent + (network_direction * 4 * HIDDEN + deep)[:, None] * HIDDEN + columns[None, :]
            )
            state_gradient = tl.dot(gate_gradient, weight, state_gradient)
    gate = gates + row[:, None] * (4 * HIDDEN) + columns[None, :]
    input_gate = tl.load(gate).to(tl.float32)
    forget_gate = tl.load(gate + HIDDEN).to(tl.float32)
    candidate = tl.load(gate + 2 * HIDDEN).to(tl.float32)
    output_gate = tl.load(gate + 3 * HIDDEN).to(tl.float32)
    cell_tanh = _tanh(tl.load(cells + offsets))
    old_cell = tl.zeros((ROWS, COLUMNS), tl.float32)
    if not BEGIN:
        old_cell = tl.load(cells + previous_row[:, None] * HIDDEN + columns[None, :])
    carried_gradient = tl.load(carried_to_cell + state_offsets)
    cell_gradient = carried_gradient + state_gradient * output_gate * (1 - cell_tanh * cell_tanh)
    active = (tl.load(lengths + network * captions + rows) > position)[:, None]
    tl.store(gate, tl.where(active, cell_gradient * candidate * input_gate * (1 - input_gate), 0.0))
    tl.store(gate + HIDDEN, tl.where(active, cell_gradient * old_cell * forget_gate * (1 - forget_gate), 0.0))
    tl.store(
        gate + 2 * HIDDEN, tl.where(active, cell_gradient * input_gate * (1 - candidate * candidate), 0.0)
    )
    tl.store(
        gate + 3 * HIDDEN, tl.where(active, state_gradient * cell_tanh * output_gate * (1 - output_gate), 0.0)
    )
    tl.store(carried_to_cell + state_offsets, tl.where(active, cell_gradient * forget_gate, carried_gradient))
    tl.store(carried_to_state + state_offsets, tl.where(active, 0.0, state_gradient))


def lstm_backward(
    gates: Tensor,
    cells: Tensor,
    recurrent: StackedWeights,
    lengths: Tensor,
    above: Tensor | None,
    last: Tensor | None,
    dropout: StepDropout | None,
) -> Tensor:
    networks, positions, captions = gates.shape[:3]
    shape = (networks, 2, captions, HIDDEN_SIZE)
    to_cell = torch.zeros(shape, device=gates.device)
    to_state = torch.zeros(shape, device=gates.device) if last is None else last.contiguous().clone()
    key, rate = _dropout_key(dropout, 1)
    grid = (2 * networks, HIDDEN_SIZE // _COLUMN_BLOCK, captions // ROWS)
    for step in reversed(range(positions)):
        _lstm_backward_kernel[grid](
            gates, recurrent.low, cells, gates if above is None else above, to_state, to_cell, lengths,
            lengths if dropout is None else dropout.seeds, step, positions, captions, key, rate,
            HIDDEN=HIDDEN_SIZE, ROWS=ROWS, COLUMNS=_COLUMN_BLOCK, DEEP=_DEPTH_BLOCK,
            BEGIN=step == 0, END=step == positions - 1, ABOVE=above is not None, DROP=dropout is not None, num_warps=8,
        )  # fmt: skip
    return gates

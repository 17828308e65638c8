"""Lane dependence: which lanes' operands each result of an instruction depends on.

Matrix products and loads combine registers of several lanes, and halves of these. The dependence is
derived from the instruction's function by changing one operand of one lane at a time, so that no
layout is written down twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..core.geometry import WARP, Flat, Geometry, WarpView
from ..isa import DTYPES, Op

LOW, HIGH = 1, 2
BOTH = LOW | HIGH
"""Halves of a register of 32 bits; of others there is but the whole."""
_CHANGE = np.uint8(4)
"""What is changed in each byte: a bit that all bytes of the operands tried have."""
_AT_ONCE = 1 << 22
"""Lanes tried at once, of each operand."""
_MANY = 1024
"""Trials after which one set of numbers is enough: a warpgroup's product has some thousands."""


class Parts(NamedTuple):
    """Dependence of results on operands.

    Attributes:
        reads: Entries ``operand * 128 + halves * 32 + lane``, uint16.
        starts: Start of the entries of each result, half and lane, int32, and the end: ``(2 *
            result + half) * lanes + lane``.
        lanes: 32; or 1 if each lane depends only on its own registers.
    """

    reads: Flat
    starts: Flat
    lanes: int

    def of(self, results: Sequence[int]) -> "Parts":
        """Return the dependence of some results."""
        step = 2 * self.lanes
        bounds = [self.starts[step * n : step * (n + 1) + 1] for n in results]
        reads = [self.reads[b[0] : b[-1]] for b in bounds]
        starts = np.cumsum([0, *(n for b in bounds for n in np.diff(b))])
        some = np.concatenate(reads) if reads else self.reads[:0]
        return Parts(some, starts.astype(np.int32), self.lanes)


class _Trial(NamedTuple):
    """An operand changed in some lanes; ``half``: 0, 1, or -1 for both."""

    operand: int
    half: int
    lanes: Flat

    def entry(self, lane: Flat) -> Flat:
        """Return the entries of the trial's operand in ``Parts.reads``."""
        halves = BOTH if self.half < 0 else LOW << self.half
        found: Flat = (self.operand * 4 + halves) * WARP + lane
        return found


def parts(op: Op, fixed: Mapping[int, np.generic] = MappingProxyType({})) -> Parts:
    """Return the dependence of an instruction's results; ``fixed``: constant operands.

    Operands are random numbers around 1 of the right type; predicates are true. Operands that
    select others, such as the metadata of a sparse matrix, cannot be analysed in this way.
    """
    lanes = WARP if op.warp else 1
    found: list[Flat] = []
    for seed in (0, 1):
        tried = _Tried(op, lanes, seed, fixed)
        remaining: list[_Trial] = []
        for operand, half in tried.operands():
            own = tried.own(operand, half)
            if own is None:
                remaining += [
                    _Trial(operand, half, np.arange(lanes) == lane) for lane in range(lanes)
                ]
            else:
                found.append(own)
        entries = np.concatenate(
            [
                np.zeros(0, np.int64),
                *(trial.entry(np.flatnonzero(trial.lanes)[:1]) for trial in remaining),
            ]
        )
        step = max(1, _AT_ONCE // lanes)
        for first in range(0, len(remaining), step):
            place, trial = tried.changed(remaining[first : first + step])
            found.append(place << 16 | entries[first + trial])
        if len(remaining) > _MANY:
            break
    every = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
    places = np.arange(2 * len(op.outputs) * lanes + 1)
    starts = np.searchsorted(every >> 16, places).astype(np.int32)
    return Parts((every & 0xFFFF).astype(np.uint16), starts, lanes)


class _Tried:
    """An instruction's function on random numbers of one seed."""

    def __init__(self, op: Op, lanes: int, seed: int, fixed: Mapping[int, np.generic]) -> None:
        self.op, self.lanes, self.fixed = op, lanes, fixed
        rng = np.random.default_rng(seed)
        self.base: list[Flat] = []
        for place, kind in enumerate(op.inputs):
            dtype = np.dtype(DTYPES[kind])
            if place in fixed:
                self.base.append(np.full(lanes, fixed[place]).astype(dtype))
                continue
            given = rng.integers(0x3C, 0x40, (lanes, max(1, dtype.itemsize)), np.uint8)
            if dtype == np.float64:  # others of these bytes are near to each other as they are
                given[:, 6:] = 0xF4, 0x3F
            self.base.append(given[:, 0] > 0 if dtype.kind == "b" else given.view(dtype)[:, 0])

    def operands(self) -> Iterator[tuple[int, int]]:
        """Yield operands that may be changed, by halves if they have halves."""
        for operand, given in enumerate(self.base):
            if given.dtype.kind != "b" and operand not in self.fixed:
                halves = (0, 1) if _split(given) else (-1,)
                yield from ((operand, half) for half in halves)

    def own(self, operand: int, half: int) -> Flat | None:
        """Return the dependence if every lane depends on its own operand only; else ``None``."""
        number = np.arange(self.lanes)
        masks = [(number >> bit & 1) == value for bit in range(5) for value in (0, 1)]
        trials = [_Trial(operand, half, mask) for mask in masks]
        place, trial = self.changed(trials)
        lane = place % self.lanes
        flipped = np.zeros((len(trials), 2 * len(self.op.outputs) * self.lanes), bool)
        flipped[trial, place] = True
        touched = flipped.any(0)
        alone = np.array(masks)[:, np.arange(flipped.shape[1]) % self.lanes] & touched
        if not np.array_equal(flipped, alone):
            return None
        places, lane = np.flatnonzero(touched), np.flatnonzero(touched) % self.lanes
        found: Flat = places << 16 | trials[0].entry(lane)
        return found

    def changed(self, trials: list[_Trial]) -> tuple[Flat, Flat]:
        """Return all results that change: index in ``starts``, and trial."""
        count = len(trials)
        geometry = Geometry((count + 1, 1, 1), (self.lanes, 1, 1), np.arange(count + 1))
        values = []
        for operand, given in enumerate(self.base):
            mine = [i for i, trial in enumerate(trials) if trial.operand == operand]
            if not mine:
                values.append(given.reshape(1, 1, self.lanes, 1))
                continue
            full = np.repeat(given[:, None], count + 1, axis=1)
            cells = full.view(np.uint8).reshape(self.lanes, count + 1, -1)
            for i in mine:
                half = trials[i].half
                bytes_ = slice(None) if half < 0 else slice(2 * half, 2 * half + 2)
                cells[trials[i].lanes, i, bytes_] ^= _CHANGE
            values.append(full.reshape(1, 1, self.lanes, count + 1))
        with np.errstate(all="ignore"):
            view = [WarpView(geometry, None)] if self.op.warp else []
            made = self.op.fn(*view, *values)
        places, which = [], []
        for number, result in enumerate(made if isinstance(made, tuple) else (made,)):
            whole = geometry.full(np.asarray(result))
            cells = np.ascontiguousarray(whole).view(np.uint8)
            cells = cells.reshape(self.lanes, count + 1, whole.dtype.itemsize)
            other = cells[:, :count] != cells[:, count:]
            for half in (0, 1):
                mine_ = slice(2 * half, 2 * half + 2) if _split(whole) else slice(None)
                lane, trial = np.nonzero(other[..., mine_].any(-1))
                places.append((2 * number + half) * self.lanes + lane)
                which.append(trial)
        return np.concatenate(places), np.concatenate(which)


def _split(array: Flat) -> bool:
    """Whether a register may hold two 16-bit numbers."""
    return array.dtype.kind in "iu" and array.dtype.itemsize == 4

"""Advice: each rule names the kernel with its defect, spares its twin, and foretells the gain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from simulator import Prediction
from simulator.prediction.advice.advice import MAX_ADVICE, RULES

SOURCE = Path(__file__).with_name("advised.cu")
MANY = 1 << 20
Array = Callable[[], Any]


@dataclass(frozen=True)
class Launch:
    """An entry of ``advised.cu``, how it is launched, and what ``predict`` is told besides.

    What makes an argument stands for it: the arrays of all cases are a quarter of a gigabyte.
    """

    entry: str
    grid: int
    block: int | tuple[int, int]
    args: Sequence[Any]
    options: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    def predicted(self) -> Prediction:
        kernel = Kernel.from_cuda(SOURCE, self.entry, options=self.options)
        args = [arg() if callable(arg) else arg for arg in self.args]
        return simulator.predict(kernel, self.grid, self.block, args, **self.more)


@dataclass(frozen=True)
class OfLibrary:
    """A kernel of the library."""

    name: str
    size: str
    tile: int | None = None

    def predicted(self) -> Prediction:
        entry = library.get(self.name)
        launch = entry.launch(entry.parse_size(self.size), self.tile, np.random.default_rng(0))
        kernel = entry.kernel(self.tile)
        return simulator.predict(kernel, launch.grid, launch.block, launch.args)


def floats(count: int) -> Array:
    return lambda: np.ones(count, np.float32)


def ints(count: int, below: int) -> Array:
    return lambda: np.random.default_rng(0).integers(0, below, count, np.int32)


def bytes_() -> Any:
    return np.zeros(4 * MANY, np.uint8)


def in_order() -> Any:
    return np.arange(MANY, dtype=np.int32)


POINTS = (floats(135168), floats(135168), 1024)
TABLE = (floats(65536), floats(2112 * 1024))
WAITS = (ints(24 * 135168, 1), ints(135168, 1), 24)
LOOP = (floats(4 * MANY), floats(MANY), 4 * MANY)
FEW = {"shared_bytes": 100_000}
CASES: dict[str, tuple[Launch | OfLibrary, Launch | OfLibrary, float]] = {
    "strided": (
        Launch("fields", 4096, 256, [floats(8 * MANY), floats(MANY)]),
        Launch("arrays", 4096, 256, [floats(MANY), floats(MANY)]), 1.1,
    ),
    "uncoalesced": (
        Launch("gather", 4096, 256, [floats(MANY), ints(MANY, MANY), floats(MANY)]),
        Launch("gather", 4096, 256, [floats(MANY), in_order, floats(MANY)]),
        1.2,
    ),
    "unaligned": (
        Launch("fill", 2112, 256, [floats(9 * MANY), 1]),
        Launch("fill", 2112, 256, [floats(9 * MANY), 0]), 1.1,
    ),
    "small transactions": (
        Launch("narrow", 16384, 256, [bytes_, bytes_]),
        Launch("wide", 4096, 256, [bytes_, bytes_]), 1.2,
    ),
    "bank conflicts": (
        Launch("columns<32>", 2048, (32, 8), [floats(2 * MANY), floats(2 * MANY)]),
        Launch("columns<33>", 2048, (32, 8), [floats(2 * MANY), floats(2 * MANY)]), 1.1,
    ),
    "redundant loads": (
        Launch("all_points", 528, 256, POINTS), Launch("tiled_points", 528, 256, POINTS), 1.5,
    ),
    "redundant between blocks": (
        Launch("table<1>", 2112, 1024, TABLE), Launch("table<4>", 528, 1024, TABLE), 1.3,
    ),
    "missing reuse": (
        Launch("in_memory", 528, 256, [floats(32 * 135168), floats(135168), 32]),
        Launch("in_register", 528, 256, [floats(32 * 135168), floats(135168), 32]), 1.3,
    ),
    "operands": (
        OfLibrary("matmul_tiled", "2048x2048x64"),
        OfLibrary("matmul_register_tiled", "2048x2048x64", 64), 1.5,
    ),
    "spills": (
        Launch("many_registers", 1056, 256, [floats(65536), floats(270336)],
               ("--maxrregcount=32",)),
        Launch("many_registers", 1056, 256, [floats(65536), floats(270336)]), 1.3,
    ),
    "low occupancy": (
        Launch("waits", 1056, 128, WAITS, more=FEW), Launch("waits", 1056, 128, WAITS), 1.5,
    ),
    "too few blocks": (
        Launch("loop", 16, 256, LOOP), Launch("loop", 1056, 256, LOOP), 1.5,
    ),
    "divergence": (
        Launch("ways<1>", 1056, 256, [floats(270336), 30]),
        Launch("ways<32>", 1056, 256, [floats(270336), 30]), 1.2,
    ),
    "serial atomics": (
        Launch("count_all", 4096, 256, [ints(MANY, 64), ints(64, 1)]),
        Launch("count_in_block", 4096, 256, [ints(MANY, 64), ints(64, 1)]), 1.3,
    ),
    "atomics of blocks": (
        Launch("every_block", 65536, 32, [floats(4 * MANY), floats(1), 4 * MANY]),
        Launch("every_block", 4224, 32, [floats(4 * MANY), floats(1), 4 * MANY]), 1.4,
    ),
    "serial shared atomics": (
        Launch("shared_word", 528, 256, [floats(16 * 135168), floats(528), 16]),
        Launch("warp_sums", 528, 256, [floats(16 * 135168), floats(528), 16]), 1.3,
    ),
    "unneeded barriers": (
        Launch("alone<true>", 1056, 256, [floats(270336), 40]),
        Launch("alone<false>", 1056, 256, [floats(270336), 40]), 1.2,
    ),
}  # fmt: skip
"""By rule: with the defect, without it, and within what ratio the gain foretells the latter."""


QUICK = ("uncoalesced", "divergence", "unneeded barriers", "atomics of blocks")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [r if r in QUICK else pytest.param(r, marks=pytest.mark.slow) for r in CASES]
)
def test_a_defect_is_named_and_its_twin_spared(rule: str) -> None:
    faulty, twin, ratio = CASES[rule]
    found, mended = faulty.predicted(), twin.predicted()
    print(found.time_ms * 1e3, mended.time_ms * 1e3, *found.advice, "--", *mended.advice, sep="\n")
    named = {advice.rule: advice for advice in found.advice}
    assert rule in named
    assert rule not in {advice.rule for advice in mended.advice}
    advice = named[rule]
    assert 1 / ratio < advice.changed_ms / mended.time_ms < ratio


@pytest.mark.slow
def test_full_blocks_leave_other_multiprocessors_idle() -> None:
    few = Launch("loop", 8, 1024, LOOP).predicted()
    assert few.advice[0].rule == "too few blocks"


@pytest.mark.slow
def test_blocks_that_every_limit_holds_at_once_have_no_advice_on_it() -> None:
    bound = {"shared_bytes": 6144, "registers": 32}
    found = Launch("waits", 2112, 64, WAITS, more=bound).predicted()
    assert "low occupancy" not in {advice.rule for advice in found.advice}


@pytest.mark.slow
def test_tickets_and_locks_are_no_sums() -> None:
    args = [ints(1, 1), ints(1, 1), ints(16, 1), 20]
    found = Launch("no_sums", 16, 128, args).predicted().advice
    assert not any("atomics" in advice.rule for advice in found), found


def test_every_rule_has_a_twin() -> None:
    assert list(CASES) == [rule.name for rule in RULES]
    assert MAX_ADVICE == 3

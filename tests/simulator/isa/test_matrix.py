"""Matrices across a warp's registers, against NumPy's own transposition."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.isa.harness import MACHINES, kernel


@dataclass(frozen=True)
class Case:
    """One instruction; ``count`` matrices."""

    name: str
    count: int
    transposed: bool

    @property
    def code(self) -> str:
        """The statement: results in ``%o0`` and on, the row's address in ``%at``, ``%a`` held."""
        if not self.count:
            return f"{self.name} %o0, %a;"
        elements = f"{{{', '.join(f'%o{i}' for i in range(self.count))}}}"
        operands = ("[%at]", elements) if self.stores else (elements, "[%at]")
        return f"{self.name} {', '.join(operands)};"

    @property
    def stores(self) -> bool:
        """Whether it stores elements, which are ``%o0`` and on."""
        return self.name.startswith("st")

    @property
    def plain(self) -> str:
        """The code with registers of its own."""
        return f".reg .b32 %o<4>, %a, %at; {self.code}"


CASES = (
    Case("movmatrix.sync.aligned.m8n8.trans.b16", 0, True),
    *(
        Case(f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * trans}.{space}.b16", count, trans)
        for count in (1, 2, 4)
        for trans in (False, True)
        for space in ("shared", "shared::cta")
    ),
    *(
        Case(f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' * trans}.{space}.b16", count, trans)
        for count, space in ((1, "shared"), (2, "shared::cta"), (4, "shared"))
        for trans in (False, True)
    ),
)
LOADS = tuple(case for case in CASES if case.name.startswith("ld"))
ROWS = 32
"""Of 16 bytes: four matrices."""
RNG = np.random.default_rng(8)
ELEMENTS = RNG.integers(0, 1 << 16, (ROWS, 8), np.uint16)
PLACES = RNG.permutation(ROWS).astype(np.uint32)
"""Where each lane's row stands in shared memory."""


def program(case: Case, pitch: int = 16, barrier: str = "bar.sync 0;") -> Kernel:
    """Each lane puts its row into shared memory, and the warp loads them as matrices.

    Of a store: the row's words are elements too, and each lane gets the row that was stored.
    """
    held = "ld.global.b32 %a, [%in];" if not case.count else ""
    first = " ".join(f"mov.b32 %o{i}, %w{i};" for i in range(4)) if case.stores else ""
    last = "bar.sync 0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%at];" if case.stores else ""
    return kernel(
        [
            f".shared .align 16 .b8 rows[{ROWS * pitch}];",
            ".reg .b32 %o<4>, %a, %at, %t, %w<4>; .reg .b64 %in, %out, %place;",
            "mov.u32 %t, %tid.x; mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;",
            ".reg .b64 %rd<3>; ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];",
            "ld.param.u64 %rd2, [p2]; mul.wide.u32 %place, %t, 4; add.s64 %place, %place, %rd1;",
            "ld.global.b32 %at, [%place];",
            "mov.u32 %w0, rows;", f"mad.lo.u32 %at, %at, {pitch}, %w0;",
            "mul.wide.u32 %in, %t, 16; add.s64 %out, %in, %rd2; add.s64 %in, %in, %rd0;",
            "ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%in];",
            "st.shared.v4.b32 [%at], {%w0, %w1, %w2, %w3};", barrier,
            "mul.wide.u32 %in, %t, 4; add.s64 %in, %in, %rd0;" if held else "", held,
            first, case.code, last,
            "st.global.v4.b32 [%out], {%o0, %o1, %o2, %o3};",
        ],
        3,
    )  # fmt: skip


def expected(case: Case) -> Any:
    """By lane, the words of the elements it gets; of a store, of its row."""
    words = ELEMENTS.view(np.uint32)
    if case.stores:
        found = words.copy()
        for i in range(case.count):
            matrix = np.ascontiguousarray(words[:, i]).view(np.uint16).reshape(8, 8)
            matrix = np.ascontiguousarray(matrix.T if case.transposed else matrix)
            found[8 * i : 8 * i + 8] = matrix.view(np.uint32)
        return found
    found = np.zeros((ROWS, 4), np.uint32)
    for i in range(case.count or 1):
        matrix = ELEMENTS[8 * i : 8 * i + 8]
        matrix = np.ascontiguousarray(matrix.T if case.transposed else matrix)
        found[:, i] = matrix.view(np.uint32).reshape(-1)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_elements(machine: Any, case: Case) -> None:
    out = np.zeros((ROWS, 4), np.uint32)
    machine.launch(program(case), 1, 32, [ELEMENTS.view(np.uint32), PLACES, out])
    assert (out == expected(case)).all()


def launch(case: Case, **how: Any) -> simulator.Run:
    """A run with all checks."""
    out = np.zeros((ROWS, 4), np.uint32)
    places = np.arange(ROWS, dtype=np.uint32)
    return simulator.launch(program(case, **how), 1, 32, [ELEMENTS.view(np.uint32), places, out])


@pytest.mark.parametrize("case", LOADS, ids=lambda case: case.name)
def test_counts_rows_of_eight_lanes(case: Case) -> None:
    """A matrix is a wavefront, if its rows lie in different banks; each row a lane's."""
    packed, apart = (launch(case, pitch=pitch).counters.shared_load for pitch in (16, 128))
    assert packed.requests == apart.requests == 1
    assert packed.accesses == 8 * case.count
    assert packed.bytes == 8 * 16 * case.count
    assert (packed.wavefronts, packed.bank_conflicts) == (case.count, 0)
    assert (apart.wavefronts, apart.bank_conflicts) == (8 * case.count, 7 * case.count)


@pytest.mark.parametrize("case", [case for case in CASES if case.stores], ids=lambda c: c.name)
def test_counts_rows_that_are_stored(case: Case) -> None:
    """Beside those that the lanes put there before."""
    run = launch(case)
    assert not run.hazards
    assert run.counters.shared_store.requests == 2
    assert run.counters.shared_store.accesses == ROWS + 8 * case.count


def test_checks_see_the_rows() -> None:
    """A lane's rows, which others wrote: a race without a barrier, and memory out of bounds."""
    case = LOADS[-1]
    assert not launch(case).hazards
    code = program(case, barrier="xor.b32 %at, %at, 16;").ptx
    out = np.zeros((ROWS, 4), np.uint32)
    arrays = [ELEMENTS.view(np.uint32), np.arange(ROWS, dtype=np.uint32), out]
    run = simulator.launch(Kernel.from_ptx(code, "k"), 1, 32, arrays)
    assert {hazard.kind for hazard in run.hazards} == {"raw-race"}
    far = code.replace("xor.b32 %at, %at, 16;", "bar.sync 0; add.u32 %at, %at, 8;")
    run = simulator.launch(Kernel.from_ptx(far, "k"), 1, 32, arrays)
    assert "misaligned" in {hazard.kind for hazard in run.hazards}

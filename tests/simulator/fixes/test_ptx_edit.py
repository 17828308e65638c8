"""Barriers put into PTX and taken out, however its instructions are laid out in lines."""

import pytest

from kernels import Kernel
from simulator.fixes.edits.ptx_edit import with_barriers, without_barriers
from simulator.isa import parse

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .pred %p; .reg .b32 %r, %bar;
mov.u32 %r, 1; setp.ne.u32 %p, %r, 1; add.u32 %bar, %r, 1;
L: @%p
bar.sync
0;
ret; /* bar.sync 1; */ M: @!%p bar.sync 0; bar.sync 2
;
// bar.sync 3;
.loc 1 2 3
barrier.sync.aligned /* ; */ 4,
  64; add.u32 %r,
  %r, 1; exit;
mov.b32 %r, 5;
}
"""


def body(kernel: Kernel) -> list[str]:
    function = parse(kernel.ptx).functions["k"]
    function.load()
    return [
        ("@" if ins.guard else "") + ".".join((ins.opcode, *ins.modifiers)) for ins in function.body
    ]


KERNEL = Kernel.from_ptx(TEXT, "k")
WHOLE = body(KERNEL)


@pytest.mark.parametrize(
    ("lines", "gone"), [([7], [3]), ([10, 10], [5, 6]), ([14], [7]), ([10], [5])]
)
def test_a_barrier_is_taken_out(lines: list[int], gone: list[int]) -> None:
    edited = without_barriers(KERNEL, lines)
    assert body(edited) == [ins for i, ins in enumerate(WHOLE) if i not in gone]
    assert edited.ptx.count("\n") == TEXT.count("\n")


@pytest.mark.parametrize("line", [6, 8, 9, 12, 15, 17])
def test_where_there_is_none(line: int) -> None:
    with pytest.raises(ValueError, match=f"no barrier on PTX line {line}"):
        without_barriers(KERNEL, [line])


@pytest.mark.parametrize(
    ("line", "place"), [(6, 0), (7, 3), (10, 4), (14, 7), (15, 8), (16, 9), (17, 10)]
)
def test_a_barrier_is_put_in_front(line: int, place: int) -> None:
    """Not between a guard and what it guards, nor into an instruction."""
    edited = with_barriers(KERNEL, [line], "bar.warp.sync 7;")
    assert body(edited) == [*WHOLE[:place], "bar.warp.sync", *WHOLE[place:]]
    assert edited.ptx.count("\n") == TEXT.count("\n")
    both = with_barriers(KERNEL, [6, line], "bar.warp.sync 7;")
    assert body(both).count("bar.warp.sync") == 1 + (line != 6)


def test_a_barrier_that_nothing_parts_from_its_place() -> None:
    """``.loc`` needs no end of its line."""
    text = TEXT.replace(".loc 1 2 3\nbarrier", ".loc 1 2 3barrier").replace("// bar.sync 3;\n", "")
    kernel = Kernel.from_ptx(text, "k")
    assert body(kernel) == WHOLE
    assert body(without_barriers(kernel, [12])) == [*WHOLE[:7], *WHOLE[8:]]
    assert body(with_barriers(kernel, [12])) == [*WHOLE[:7], "bar.sync", *WHOLE[7:]]

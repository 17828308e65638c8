"""Every barrier of every race-free kernel in the library is needed, or proved not to be.

Each barrier instruction is taken out of the PTX by itself. Either the checks report
something, or the outputs are the same bits under eight random schedules. ``pytest -s`` shows
the table.
"""

import functools

import pytest

import simulator
from kernels import Kernel, library
from kernels.library import LibraryKernel
from kernels.ptx.module import Instruction
from simulator.compile.blocks import reachable
from simulator.cures.ptx_edit import without_barriers
from simulator.isa import parse

SCHEDULES = range(8)
SIZES = {"matmul_naive_square": 40, "matmul_tiled_exact": 32, "matmul_vectorised": (40, 36, 48),
         "matmul_tensor": (8, 16, 40), "matmul_wgmma": (8, 16, 200),
         "matmul_async_copy": (17, 9, 33)}  # fmt: skip
BY_AXES = {
    ("M", "N", "K"): (40, 33, 50),
    ("M", "N"): (40, 70),
    ("N",): (600,),
    ("blocks",): (2,),
}
CORRECT = [name for name in library.names() if not library.get(name).twin]


def barriers(kernel: Kernel) -> list[Instruction]:
    """The barriers that the kernel can reach, of the block or of the warp, once each.

    A function that is called from several places has a copy for each in ``reachable``.
    """
    found = {
        ins.line: ins
        for function in reachable(parse(kernel.ptx), kernel.entry)
        for ins in function.body
        if ins.opcode in ("bar", "barrier")
    }
    return list(found.values())


@functools.cache
def has_barriers(name: str) -> bool:
    """Whether it has any; asked by each test, as to compile them all takes seconds."""
    return bool(barriers(library.get(name).kernel(build="source")))


def run(
    entry: LibraryKernel, kernel: Kernel, schedule: str | int, checks: str
) -> tuple[simulator.Run, list[bytes]]:
    """A run, and the outputs' bits."""
    size = SIZES.get(entry.name, BY_AXES[entry.axes])
    launch = entry.launch((size,) * len(entry.axes) if isinstance(size, int) else size)
    result = simulator.launch(
        kernel, launch.grid, launch.block, launch.args, launch.shared_bytes, schedule, checks
    )
    return result, [launch.args[place].tobytes() for place in launch.outputs.values()]


def verdict(entry: LibraryKernel, kernel: Kernel, line: int, wanted: list[bytes]) -> str:
    """What becomes of the kernel without a barrier: the hazards, ``harmless`` or ``MISSED``."""
    mutant = without_barriers(kernel, [line])
    result, _ = run(entry, mutant, "lockstep", "all")
    if result.hazards:
        return ", ".join(sorted({f"{h.kind} ({h.severity})" for h in result.hazards}))
    for schedule in SCHEDULES:
        if run(entry, mutant, schedule, "none")[1] != wanted:
            return f"MISSED: wrong under schedule {schedule}"
    return f"harmless: equal under {len(SCHEDULES)} schedules"


@pytest.mark.slow
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("name", CORRECT)
def test_a_barrier_taken_out_is_noticed(name: str, build: str) -> None:
    if not has_barriers(name):
        pytest.skip("it has no barrier")
    entry = library.get(name)
    kernel = entry.kernel(build=build)
    found = barriers(kernel)
    assert found
    whole, wanted = run(entry, kernel, "lockstep", "all")
    assert whole.hazards == []
    verdicts = [verdict(entry, kernel, barrier.line, wanted) for barrier in found]
    print()
    for barrier, text in zip(found, verdicts, strict=True):
        line = barrier.location.line if barrier.location else "-"
        print(f"{name:<33} {build:<6} line {line:>3}, of the PTX {barrier.line:>4}  {text}")
    assert [text for text in verdicts if text.startswith("MISSED")] == []


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("matmul_naive", 0),
        ("matmul_tiled", 2),
        ("scan_blelloch", 3),
        ("faulty_lanes_war_fixed", 1),  # one __syncwarp(), called from three places
    ],
)
def test_the_barriers_are_seen(name: str, count: int) -> None:
    """Of the source build, which inlines none."""
    assert len(barriers(library.get(name).kernel(build="source"))) == count

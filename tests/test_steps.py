"""Steps: how they read, and that code can be made of them in more than one way."""

import gc
import inspect
import linecache
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel, library
from simulator.compile.compiler import Compiler, compile_ptx
from simulator.compile.listing import listing
from simulator.isa import parse
from tests import scalar_machine
from tests.fuzz.compare import simulated
from tests.fuzz.ptx_statements import draw
from tests.launches import drawn_later
from tilescope.cli import main


@pytest.mark.slow_cases("6")
@pytest.mark.parametrize("first", [0, 6, *drawn_later([12, 18])])
def test_random_programs_by_both_emitters(first: int) -> None:
    for seed in range(first, first + 6):
        launch = draw(seed, small=True).launch()
        kernel = Kernel.from_ptx(launch.ptx, launch.entry)
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in launch.args]
        found = scalar_machine.run(kernel, launch.grid, launch.block, args)
        assert found == simulated(launch, "lockstep", "none")[0], seed


@pytest.mark.slow_but("reduction_shuffle-size2-device")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("name", "size"),
    [("matmul_tiled", (5, 17, 3)), ("transpose_padded", (33, 20)), ("reduction_shuffle", (100,))],
)
def test_the_library_by_both_emitters(name: str, size: tuple[int, ...], build: str) -> None:
    entry = library.get(name)
    one, other = entry.launch(size), entry.launch(size)
    kernel = entry.kernel(build=build)
    found = scalar_machine.run(kernel, one.grid, one.block, one.args, one.shared_bytes)
    simulator.launch(kernel, other.grid, other.block, other.args, other.shared_bytes)
    assert found == [a.tobytes() for a in other.args if isinstance(a, np.ndarray)]


MATRICES = """\
.visible .entry k(.param .u64 out) {
.reg .b32 %r<8>; .reg .b64 %d<2>; .shared .align 16 .b8 s[512];
ld.param.u64 %d0, [out]; mov.u32 %r0, %laneid; mad.lo.u32 %r1, %r0, 77777, 5;
mov.u32 %r2, s; mad.lo.u32 %r2, %r0, 16, %r2;
st.shared.v4.b32 [%r2], {%r1, %r0, %r2, %r1}; bar.arrive 1, 64; bar.sync 0;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r2];
movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r1;
mul.wide.u32 %d1, %r0, 16; add.u64 %d1, %d1, %d0;
st.global.v4.b32 [%d1], {%r3, %r4, %r5, %r1}; ret; }
"""
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def test_matrices_by_both_emitters() -> None:
    kernel = Kernel.from_ptx(HEADER + MATRICES)
    out = np.zeros(128, np.uint32)
    (found,) = scalar_machine.run(kernel, 1, 32, [out])
    simulator.launch(kernel, 1, 32, [out])
    assert found == out.tobytes()
    assert len(set(out.tolist())) > 64


BODY = """\
.visible .entry k(.param .u64 out) {
.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .f32 %f<2>;
.shared .align 8 .b8 s[128];
ld.param.u64 %d0, [out];
mov.u32 %r0, %tid.x; setp.lt.s32 %p, %r0, 5; mul.wide.u32 %d1, %r0, 4;
ld.global.v2.f32 {%f0, _}, [%d0+8];
@!%p st.shared.f32 [s+4], %f0;
shfl.sync.idx.b32 %r1|%p, %r0, 0, 31, -1;
fence.acq_rel.gpu;
bar.red.popc.u32 %r2, 1, %p;
@%p bra DONE;
red.shared.add.u32 [s], 1;
DONE: ret; }
"""
STEPS = """\
block 0, then block 1
  PTX  line  step
    7        move     r0:u64 = parameter[0]
    8        move     r1 = %tid.x
    8        compute  r2 = setp.lt.s32 r1, 5
    8        compute  r3:u64 = mul.wide.u32 r1:u32, 4
    9        access   r4, _ = load_0 global.v2.f32 [r0+8]
   10        access   @!r2 store_1 shared.f32 [s+4], r4

block 1, then block 2
  PTX  line  step
   11        wait     lanes -1
   11        warp     r5, r2 = shfl.sync.idx.b32 r1, 0, 31, -1
   12        fence    of the device
   13        barrier  1, 0, r2: popc in r6

block 2, then block 4 or block 3
  PTX  line  step
   14        branch   @r2

block 3, then block 4
  PTX  line  step
   15        access   atomic_2 shared.u32 [s], 1

block 4, then nowhere
  PTX  line  step
   16        exit
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.ptx"
    file.write_text(HEADER + BODY)
    return file


def test_steps_are_told_one_a_line(small: Path) -> None:
    told = CliRunner().invoke(main, ["ptx", str(small), "--steps"])
    assert told.output == STEPS
    assert CliRunner().invoke(main, ["ptx", str(small)]).output == small.read_text() + "\n"


@pytest.mark.parametrize("name", ["matmul_tiled", "softmax_rows", "histogram_shared"])
def test_steps_of_the_library(name: str) -> None:
    """In 80 columns, with the line of the source; a step or more for each line of PTX."""
    kernel = library.get(name).kernel(build="source")
    program = compile_ptx(kernel.ptx, kernel.entry)
    lines = listing(program).splitlines()
    assert max(map(len, lines)) <= 80
    places = {tuple(map(int, line.split()[:2])) for line in lines if line[:5].strip().isdigit()}
    known = [ins for block in program.blocks for ins in block.block.instructions]
    assert places <= {(ins.line, ins.location.user.line) for ins in known if ins.location}
    assert len(places) > len(known) / 2


@pytest.mark.slow
def test_tracebacks_show_generated_code(small: Path) -> None:
    """Which ``linecache`` knows: each step's statement says where it stands."""
    program = Compiler(parse(small.read_text()), "k").program()
    made = program.function(0, False, {})
    assert made.__name__ == "block_0"
    told = inspect.getsource(made)
    assert re.search(r"r2 = f0_\d+_setp\(r1, k0_\d+\)  # PTX 8\n", told)
    assert re.search(r"\n    if v1.ndim or v1: store_1\(k0_\d+, v2, r4\)  # PTX 10\n", told)
    where = made.__code__.co_filename
    assert where in linecache.cache
    del program, made
    gc.collect()
    assert where not in linecache.cache

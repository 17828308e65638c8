"""The listing of a program's steps, and what a traceback shows of generated code."""

import gc
import inspect
import linecache
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernels import library
from simulator.compile.compiler import Compiler, compile_ptx
from simulator.compile.dump_ir import listing
from simulator.isa import parse
from tilescope.cli.main import main

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
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
    9        memory   r4, _ = load_0 global.v2.f32 [r0+8]
   10        memory   @!r2 store_1 shared.f32 [s+4], r4

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
   15        memory   atomic_2 shared.u32 [s], 1

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

"""What is not PTX, or is not executed yet, is refused before the launch, in one line.

(``tests/fuzz/modifiers.py`` holds every row against ptxas; here are texts and the words.)
"""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import PtxError, SimulatorError
from simulator.isa import TABLE
from tests.support.paths import DEFECTS

HEADER = """.version 8.0
.target sm_90
.address_size 64
.global .texref picture;
.global .b32 outside[4]; .func f(.param .b32 in);
.visible .entry other() {
.reg .b32 %r; tex.2d.v4.f32.f32 {%r, %r, %r, %r}, [picture, {%r, %r}]; ret;
}
.visible .entry k(.param .u64 p) {
.reg .pred %p<3>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>; .reg .b16 %h<4>;
ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
mov.u32 %r2, 5; mov.u32 %r3, 1;
"""
LINE = HEADER.count("\n") + 1


def launch(code: str) -> list[int]:
    """Run a kernel that holds some code and stores ``%r3``."""
    text = f"{HEADER}{code}\nst.global.u32 [%rd1], %r3;\nret;\n}}\n"
    out = np.zeros(32, np.int32)
    simulator.launch(Kernel.from_ptx(text, "k"), 1, 32, [out])
    return [int(x) for x in out]


NOT_PTX = [
    ("add.frobnicate.u32 %r3, %r1, %r2;", "add.frobnicate.u32", "no '.frobnicate'"),
    ("mul.lo.hi.u32 %r3, %r1, %r2;", "mul.lo.hi.u32", "'.hi'"),
    ("add.u32 %r3, %rd1, %r2;", "add.u32", "'%rd1' is .b64"),
    ("add.u32.s32 %r3, %r1, %r2;", "add.u32.s32", "'.s32'"),
    ("ld.global.cas.u32 %r3, [%rd1];", "ld.global.cas.u32", "'.cas'"),
    ("add.u32 %r3, %r1, %r2, %r2;", "add.u32", "4 operands, it takes 3"),
    ("shl.b32 %r3, %r1, %f1;", "shl.b32", "'%f1' is .f32"),
    ("mov.u32 %r3, 2; bra X; add.u32 %nope, %r1, %r2; X:", "add.u32", "'%nope' is not declared"),
    ("ld.volatile.relaxed.gpu.global.u32 %r3, [%rd1];", "ld.volatile", "'.relaxed'"),
    ("ld.glob.u32 %r3, [%rd1];", "ld.glob.u32", "no '.glob'"),
    ("add.rq.f32 %f1, %f1, %f1;", "add.rq.f32", "no '.rq'"),
    ("add.rn.rz.f32 %f1, %f1, %f1;", "add.rn.rz.f32", "'.rz' beside '.rn'"),
    ("add.rn.rn.f32 %f1, %f1, %f1;", "add.rn.rn.f32", "'.rn' twice"),
    ("add.rn %f1, %f1, %f1;", "add.rn", "is missing"),
    ("ld.global.u32 %r3, [%r1];", "ld.global.u32", "address has 64"),
    ("setp.u32 %p1, %r1, %r2;", "setp.u32", "'.eq'"),
    ("cvt.f32.s32 %f1, %r1;", "cvt.f32.s32", "'.rn'"),
    ("st.const.u32 [%rd1], %r3;", "st.const.u32", "'.const'"),
    ("@%r1 mov.u32 %r3, 2;", "mov.u32", "'%r1' is no predicate"),
    ("add.u32 %r3, %tid.x, %r2;", "add.u32", "%tid.x"),
    ("add.f32 %f1, %f1, 1;", "add.f32", "the constant 1"),
    ("add.u32 %r3, %r1, 0f3F800000;", "add.u32", "floating constant"),
    ("bfe.u32 %r3, %r1, 256, 1;", "bfe.u32", "256 is not from 0 to 255"),
    ("bar.sync 16;", "bar.sync", "no barrier 16"),
    ("bar.sync 0, 7;", "bar.sync", "multiple of 32"),
    ("ld.shared.u32 %r3, [outside];", "ld.shared.u32", "'outside' is in .global"),
    ("ld.global.u32 %r3, [nowhere];", "ld.global.u32", "'nowhere' is not declared"),
    ("ld.global.u32 %r3, [16];", "ld.global.u32", "constant"),
    ("ld.global.v2.u32 {%r3}, [%rd1];", "ld.global.v2.u32", "in braces"),
    ("lop3.and.b32 %r3, %r1, %r2, %r2, 7, %p1;", "lop3.and.b32", "two results"),
    ("shfl.idx.b32 %r3, %r1, 1, 31;", "shfl.idx.b32", "'.sync' is missing"),
    ("min.f32 %f1, %f1, %f2, %f3;", "min.f32", "4 operands"),
    ("shfl.sync.idx.b32 _|%p1, %r1, 1, 31, -1;", "shfl.sync.idx.b32", "not '_'"),
    ("elect.sync %r3|_, -1;", "elect.sync", "not '_'"),
    ("ld.global.u32 _, [%rd1];", "ld.global.u32", "not '_'"),
    ("mov.u16 %h1, %laneid;", "mov.u16", "%laneid"),
    ("setp.lt.u32 _|_, %r1, %r2;", "setp.lt.u32", "'_|_'"),
    (".param .b32 q; @%p1 st.param.b32 [q], %r1;", "st.param.b32", "'q' is a call's parameter"),
    (".param .b64 q; mov.b64 %rd3, q;", "mov.b64", "'q' is a call's parameter"),
    (".param .b8 q[64]; prefetch.param.tensormap [q];", "prefetch", "'q' is a call's parameter"),
    (".param .b64 q; mov.b64 %rd3, q+4;", "mov.b64", "'q' is a call's parameter"),  # ptxas crashes
    ("set.eq.and.bf16.u32 %h1, %r1, %r2, 1;", "set.eq.and.bf16.u32", "the constant 1"),
    ("cvt.f32.bf16 %rd3, %h1;", "cvt.f32.bf16", "'%rd3' is .b64, not .f32"),
    ("cvt.rn.bf16.f32 %h1, %rd1;", "cvt.rn.bf16.f32", "'%rd1' is .b64, not .f32"),
    ("cvt.pack.sat.u16.s32 %f1, %r1, %r2;", "cvt.pack.sat.u16.s32", "'%f1' is .f32"),
    ("prmx.b32 %r3, %r1, %r2, %r2;", "prmx.b32", "no instruction"),
]


@pytest.mark.parametrize(("code", "name", "words"), NOT_PTX, ids=[case[0] for case in NOT_PTX])
def test_what_is_not_ptx_is_refused(code: str, name: str, words: str) -> None:
    with pytest.raises(PtxError) as caught:
        launch(code)
    message = str(caught.value)
    assert message.startswith(f"'{name}")
    assert words in message
    assert message.endswith(f"PTX line {LINE}")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("L: mov.u32 %r3, 2;\nL:", "L"),
        (".reg .b64 %r3;", "%r3"),
        (".reg .b32 a, a;", "a"),
        (".local .b8 q[4]; .shared .b8 q[4];", "q"),
        (".reg .u64 p;", "p"),
    ],
)
def test_a_name_is_declared_once(code: str, name: str) -> None:
    with pytest.raises(PtxError, match=rf"^PTX line \d+: '{name}' is declared twice$"):
        launch(code)


LATER = [
    ("fma.rn.oob.f16x2 %r3, %r1, %r1, %r1;", "out-of-bounds NaN"),
    ("tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [picture, {%f1, %f2}];", "references to textures"),
    ("mov.u64 %rd3, picture;", "references to textures"),
    ("mapa.u32 %r3, %r1, 1;", "generic addresses of 32 bits"),
    (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.b128 [%r1], [%r1];",
        "clusters that take",
    ),
    (
        "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 "
        "{%r1, %r2, %r1, %r2}, {%r1, %r2}, {%r1, %r2}, {%r1, %r2, %r1, %r2}, %r3, 0;",
        "sparse matrices of 4-bit integers",
    ),
    ("ld.global.u32 %r3, [%rd1+4611686018427387904];", "an offset of 4611686018427387904"),
    (
        ".param .b32 q; call f, (q); ret; } .func f(.param .b32 in) { .reg .b64 %rd<4>; "
        ".reg .b32 %r<4>; mov.b64 %rd1, in;",
        "the address of a function's parameter",
    ),
]


@pytest.mark.parametrize(("code", "about"), LATER, ids=[case[0] for case in LATER])
def test_what_comes_later_is_named(code: str, about: str) -> None:
    with pytest.raises(PtxError) as caught:
        launch(code)
    message = str(caught.value)
    assert message.startswith("the simulator does not execute '")
    assert f"yet ({'an ' if 'call' in about else ''}{about}" in message
    assert message.endswith(f"PTX line {LINE}")


_INSTEAD = re.compile(
    r"[^:]+(::[^:]+)*: "
    r"((.* )?(use|leave|give|make|count|add|put) .+|no GPU simulated has another way)"
)


def _refusals() -> Iterator[str]:
    """What is said of everything that the simulator does not execute."""
    for row in itertools.chain.from_iterable(TABLE.values()):
        yield from (about for _, about in row.unsupported_signatures)
        if not row.signatures:
            yield row.section
    said_by = ("NotYet", "Unsupported", "not_yet")
    for file in (Path(simulator.__file__).parent).rglob("*.py"):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if any(name in text for name in said_by) else ():
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in said_by:
                words = ast.unparse(node.args[-1])
                if words[0] in "f'\"":
                    yield words.lstrip("f").strip("'\"")


def test_all_that_is_refused_says_what_to_use_instead() -> None:
    found = list(_refusals())
    assert len(found) > len(LATER)
    assert [text for text in found if not _INSTEAD.fullmatch(text)] == []


def test_every_later_row_says_what_it_is_about() -> None:
    for opcode, (found, *_) in TABLE.items():
        if not found.signatures:
            with pytest.raises(PtxError, match=found.section):
                launch(f"{opcode} whatever, [stands], {{there}};")


def test_the_rest_of_the_file_runs() -> None:
    """Another kernel of the header uses a texture."""
    assert launch("add.f32 %r3, %r2, %r2;") != [1] * 32
    assert launch("") == [1] * 32


def test_a_register_may_hide_a_special_one() -> None:
    with pytest.raises(PtxError, match=r"%tid is a register declared here"):
        launch("{ .reg .b32 %tid; mov.u32 %r3, %tid.x; }")
    assert launch("{ .reg .b32 %tid; mov.u32 %tid, 1; }") == [1] * 32


def test_a_variable_may_be_named_in_a_generic_access() -> None:
    code = ".shared .b32 pad[4]; .shared .b32 s[4]; st.u32 [s+4], 7; ld.u32 %r3, [s+4];"
    assert launch(code) == [7] * 32


def test_scopes_may_repeat_a_name() -> None:
    assert launch("{ .reg .b32 %r3; mov.u32 %r3, 9; }\n{ .reg .b64 %r3; L: }\nL:") == [1] * 32


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("; .visible .entry k() { ret; }", "line 3: cannot read ';'"),
        (".visible .entry k() { ret;; }", "line 3: expected an instruction, found ';'"),
        (".address_size 32\n.visible .entry k() { ret; }", "line 3: .address_size 32"),
        (".version 9.0\n.visible .entry k() { ret; }", "line 3: cannot read '.version'"),
        (".visible .entry k() .frobnicate 3 { ret; }", "line 3: cannot read '.frobnicate'"),
        (".visible .entry k() { ret; }\n.visible .entry k() { ret; }", "'k' is defined twice"),
    ],
)
def test_what_is_around_a_function(head: str, words: str) -> None:
    with pytest.raises(PtxError, match=words):
        simulator.launch(Kernel.from_ptx(f".version 9.0\n.target sm_90\n{head}\n", "k"), 1, 1, [])


@pytest.mark.parametrize("missing", [".version", ".target"])
@pytest.mark.parametrize("instead", ["", "9;", "x", "target"])
def test_what_a_text_begins_with(missing: str, instead: str) -> None:
    head = {".version": "9.0", ".target": "sm_90"}
    lines = [f"{n} {instead if n == missing else word}" for n, word in head.items()]
    lines = [line for line in lines if instead or line.strip() != missing]
    text = "\n".join((*lines, ".visible .entry k() { ret; }"))
    with pytest.raises(PtxError, match=rf"^PTX line [12]: {missing} (is missing|cannot be)"):
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("file", "argument", "words", "line"),
    [
        ("check/grid_sync.cu", np.zeros(64, np.int32), "needs a cooperative launch", 4),
        ("compile/gridsync.cu", np.zeros(64, np.int32), "needs a cooperative launch", 2),
    ],
)
def test_a_source_is_refused_by_name_and_line(
    file: str, argument: np.ndarray, words: str, line: int, build: str
) -> None:
    k = Kernel.from_cuda(str(DEFECTS / file), "k", build=build)
    with pytest.raises(SimulatorError) as caught:
        simulator.launch(k, 2, 4, [argument])
    message = str(caught.value)
    assert words in message
    assert f"{Path(file).name}:{line}, PTX line" in message
    assert "\n" not in message


def test_other_kernels_of_a_file_with_textures_run() -> None:
    out = np.zeros(4, np.float32)
    for build in ("device", "source"):
        k = Kernel.from_cuda(str(DEFECTS / "compile" / "tex_file.cu"), "plain", build=build)
        simulator.launch(k, 1, 4, [out])
    assert (out == 1).all()


@pytest.mark.parametrize("build", ["device", "source"])
def test_a_constant_that_nothing_filled(build: str) -> None:
    k = Kernel.from_cuda(str(DEFECTS / "run" / "const.cu"), "k", build=build)
    run = simulator.launch(k, 1, 32, [np.zeros(32, np.float32)])
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.severity, hazard.space) == ("unset-constant", "warning", "const")
    assert hazard.variable == "coeff"
    assert [line for _, line in hazard.places] == [3]
    assert "coeff" in str(hazard)
    unasked = simulator.launch(k, 1, 32, [np.zeros(32, np.float32)], checks="races")
    assert unasked.hazards == []


def test_a_constant_with_its_values_is_no_hazard() -> None:
    k = Kernel.from_cuda(str(DEFECTS / "check" / "global_data.cu"), "k")
    assert simulator.launch(k, 1, 8, [np.zeros(8, np.int32)]).hazards == []


@pytest.mark.parametrize("build", ["device", "source"])
def test_a_kernel_that_launches_kernels_is_told_at_its_line(build: str) -> None:
    source = "__global__ void child() {}\n__global__ void k() {\n    child<<<1, 4>>>();\n}\n"
    with pytest.raises(PtxError, match=r"launches from a kernel: .* host.*kernel.cu:3, PTX line"):
        simulator.launch(Kernel.from_cuda(source, "k", build=build), 1, 1, [])


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_a_comparison_of_16_bits_leaves_its_second_result_out(type: str) -> None:
    """ptxas knows no ``p|q`` of such floats, but a ``p|_``."""
    code = f"{{ .reg .pred %p; .reg .b16 %x; mov.b32 %r3, 0; cvt.rn.{type}.s32 %x, %r3;"
    code += f" setp.eq.{type} %p|_, %x, %x; selp.u32 %r3, 7, 0, %p; }}"
    assert launch(code) == [7] * 32
    with pytest.raises(PtxError, match="'_' has to stand there"):
        launch(code.replace("%p|_", "%p|%p"))

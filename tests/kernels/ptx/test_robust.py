"""Texts that are no PTX, or ask for too much: one line of error each, and soon."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel, KernelError
from simulator import SimulatorError
from tests.support.paths import DEFECTS
from tilescope.cli.main import main
from tilescope.view import show

PROGRAMS = DEFECTS / "random"
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def ptx(body: str, before: str = "", params: str = ".param .u64 p") -> str:
    return (
        f"{HEADER}{before}\n.visible .entry k({params}) {{\n"
        ".reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
        f"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;\n"
        f"{body}\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
    )


def launch(text: str, *more: Any) -> simulator.Run:
    return simulator.launch(Kernel.from_ptx(text), 1, 32, [np.zeros(32, np.int32), *more])


WRONG = {
    "negative parameter offset": ptx("ld.param.u64 %rd2, [p+-8];"),
    "offset past the parameters": ptx("ld.param.u64 %rd2, [p+8];"),
    "no octal number": ptx("mov.u32 %r2, 08;"),
    "65 bits": ptx("mov.u64 %rd2, 18446744073709551616;"),
    "5,000 digits": ptx(f"mov.u64 %rd2, {'9' * 5000};"),
    "alignment of 0": ptx("", params=".param .align 0 .u64 p"),
    "alignment of 3": ptx("", params=".param .align 3 .u64 p"),
    "variable's alignment of 0": ptx("", ".global .align 0 .u32 x;"),
    "variable's alignment of 12": ptx(".shared .align 12 .u32 x;"),
    "parameters of 1 GB": ptx("", params=".param .u64 p, .param .align 8 .b8 s[1073741824]"),
    "a parameter of many digits": ptx("", params=f".param .u64 p, .param .b8 s[{'9' * 5000}]"),
    "guard that is no predicate, load": ptx("@%r1 ld.global.u32 %r2, [%rd1];"),
    "guard that is no predicate, barrier": ptx("@%r1 bar.sync 0;"),
    "guard that is no predicate, store": ptx("@%r1 st.global.u32 [%rd1], %r1;"),
    "negation of a number": ptx("mov.u32 %r2, !%r1;"),
    "reduction into a predicate": ptx("bar.red.popc.u32 %p2, 0, %p1;"),
    "reduction into a number": ptx("bar.red.and.pred %r2, 0, %p1;"),
    "atomic on const": ptx("atom.const.add.u32 %r2, [%rd1], 1;"),
    "store to const": ptx("st.const.u32 [%rd1], %r1;"),
    "variable of 1 TiB": ptx("", ".global .b8 huge[1099511627776];"),
    "many large variables": ptx("", "".join(f".global .b8 v{i}[67108864];" for i in range(99))),
    "negative extent": ptx("", ".global .b32 x[-5];"),
    "too many initial values": ptx("", ".global .b32 x[2] = {1, 2, 3};"),
    "nested initial values": ptx("", f".global .b32 x[2] = {'{' * 3000}1{'}' * 3000};"),
    "nested braces": ptx("{" * 3000 + "}" * 3000),
    "nested operands": ptx("mov.u32 %r2, " + "{" * 3000 + "}" * 3000 + ";"),
    "unclosed operands": ptx("mov.u32 %r2, " + "{" * 3000 + ";"),
    "too many registers": ptx(".reg .b32 %many<900000>; .reg .b32 %more<900000>;"),
    "negative count of registers": ptx(".reg .b32 %few<-3>;"),
    "calls 300 deep": ptx("call f0, ();", "".join(
        f".func f{i}() {{ call f{i + 1}, (); ret; }}\n" for i in range(300)
    ) + ".func f300() { ret; }\n"),
    "indirect call of nothing": ptx("call (), %nothing.b32;"),
    "unclosed comment": ptx("/* never"),
    "unclosed string": ptx('.pragma "never;'),
    "lone parameter": HEADER + ".visible .entry k(.param .u64",
    "line number of 30 digits": ptx(f".loc {'1' * 30} {'2' * 30} 3"),
    "other parameters in a second declaration": ptx("").replace(
        ".visible", ".entry k(.param .u32 n) { ret; }\n.visible", 1
    ).replace("entry k(.param .u64 p)", "entry k /* */ (.param .u64 p,,)"),
    **{code: ptx(code) for code in (
        "ld.param %rd2, [p];", "ld.param.u64 %rd2;", "cvta.to.global.u64 %rd2;",
        "cvta.shared %rd2, %rd1;", "cvta.shared.u64.u8 %rd2, %rd1;", "ld.shared.u32 %r2;",
        "ld.shared %r2, [%rd1];", "ld.shared.u32 %r2, [%rd1+99999999999999999999];",
        ".shared .align 99999999999999999999 .b8 s[4];", ".shared .align 3 .b8 s[4];",
        ".shared .b8 s[99999999999999999999];", ".local .b8 l[99999999999];",
        "shfl.sync.idx.b32 %r3, %r2, 0;", "setp.ge.s32.b128 %p1, %r1, 8;",
        "mov.u32 %r2, 99999999999999999999;", ".reg .b32 %x<99999999999999999999>;",
    )},
}  # fmt: skip


@pytest.mark.slow_cases("nested braces")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_texts(name: str) -> None:
    with pytest.raises((SimulatorError, KernelError)) as caught:
        launch(WRONG[name])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_a_binary_file(tmp_path: Path) -> None:
    file = tmp_path / "binary.ptx"
    file.write_bytes(bytes(range(256)) * 40)
    result = CliRunner().invoke(main, ["check", str(file), "--grid", "1", "--block", "1"])
    assert result.exit_code == 2
    assert "no .entry in this text; is it PTX?" in result.stderr


def test_programs_that_crashed() -> None:
    with pytest.raises(SimulatorError, match=r"outside the kernel's parameters: .*PTX line 7"):
        launch((PROGRAMS / "negparam.ptx").read_text())


def test_limits_are_above_what_is_in_use() -> None:
    nested = "{" * 100 + "mov.u32 %r2, 0xFFFFFFFFU; mov.u32 %r3, 017;" + "}" * 100
    before = ".global .align 1024 .b8 room[268435456];\n.global .u32 twice[2] = {{1}, {2}};"
    assert launch(ptx(nested, before)).counters.global_store.requests == 1


@pytest.mark.slow
def test_inlining_without_end() -> None:
    """Each line says that it was inlined at itself."""
    text = ptx("\n".join([
        ".loc 1 5 0",
        *[".loc 1 5 0, function_name L, inlined_at 1 5 0\nadd.u32 %r1, %r1, 0;"] * 3000,
    ]))  # fmt: skip
    (hazard, *_) = launch(text + '.file 1 "a.cu"').hazards
    assert hazard.lines


def test_alignment_of_what_a_pointer_points_at() -> None:
    """It is not the parameter's own (Clang and Triton write it so)."""
    text = ptx(
        "ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [q];",
        params=".param .u64 .ptr .global .align 1 p, .param .u32 n, "
        ".param .u64 .ptr .global .align 4 q",
    )
    out = np.zeros(4, np.int32)
    launch(text, 7, out)
    assert out.tolist() == [7, 0, 0, 0]


def test_vector_load_from_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A register holds one number or four axes; nothing between."""
    monkeypatch.setenv("TILESCOPE_CHECK_WRITES", "1")
    out = np.arange(32, dtype=np.int32)
    text = ptx(
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16]; shfl.sync.idx.b32 %r1, %r4, 0, 31, -1;"
    )
    simulator.launch(Kernel.from_ptx(text + "\0"), 1, 32, [out])  # with the end that C's texts have
    assert out[0] == 7


def test_a_trace_of_an_access_that_nobody_makes() -> None:
    """The lanes that came all have their guard off."""
    text = ptx("@!%p1 bra OVER; @!%p1 st.global.u32 [%rd1], %r1; OVER:")
    run = simulator.launch(Kernel.from_ptx(text), 1, 32, [np.zeros(32, np.int32)], trace=True)
    assert run.trace is not None


def test_a_variable_named_by_a_number_of_many_digits() -> None:
    name = f"_Z{'9' * 5000}a"
    run = launch(ptx(f"ld.shared.u32 %r1, [{name}];", f".shared .b32 {name};"))
    assert name in run.hazards[0].message


def test_a_page_of_a_kernel_with_calls() -> None:
    text = ptx(
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), f, (a); "
        "ld.param.b32 %r1, [b]; }",
        ".func (.param .b32 y) f(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; "
        "st.param.b32 [y], %v; ret; }",
    )
    run = simulator.launch(Kernel.from_ptx(text), 1, 32, [np.zeros(32, np.int32)], trace=True)
    assert "<html" in show(run).content


@pytest.mark.parametrize("name", ["inf", "nan", "infinity", "k"])
def test_kernels_named_like_numbers(name: str, tmp_path: Path) -> None:
    source, text = tmp_path / "k.cu", tmp_path / "k.ptx"
    source.write_text(f"__global__ void {name}(float* a, float x) {{ a[threadIdx.x] = x; }}\n")
    text.write_text(
        f"{HEADER}.visible .entry {name}(.param .u64 a, .param .f32 x) {{ ret; }}\n"
        ".visible .entry other() { ret; }\n"
    )
    for path, first, code in [
        (source, [name], 0), (source, [], 0), (text, [name], 0), (text, [], 2),
    ]:  # fmt: skip
        if path == source and name == "nan":  # a function of <cmath>
            continue
        words = ["run", str(path), *first, "--grid", "1", "--block", "4", "f32[4]", "inf"]
        told = CliRunner().invoke(main, words)
        assert told.exit_code == code, told.output


LONG = """
import sys
from kernels import Kernel, KernelError
from kernels.ptx.debug_sections import inlined_calls
from kernels.source.signatures import kernel_names
from simulator.isa import parse
from kernels.errors import PtxError
endless = ".b64 -1\\n" * 200000  # a number whose last byte never comes
inlined_calls(f".section .debug_abbrev {{{endless}}}\\n.section .debug_info {{ .b8 1 }}", {})
for what in (
    "/* ", "// x\\n", "\\n", '.file 1 "a\\n', ".entry k ( ", ".param .u64 .ptr ", '"', "{", "}",
    ".loc 1 1 0\\n", ".entry k ( .param .b8 .ptr .b8 .ptr ) ", "a ", ".global .b8 x; ", "\\\\", "[",
):
    for text in (what * 20000, "entry k(" + what * 20000, "{" + what * 20000 + ")"):
        for read in (Kernel.from_ptx, parse):
            try:
                read(text + "\\n")
            except (KernelError, PtxError):
                pass
print("read")
"""


@pytest.mark.slow
def test_long_texts_are_read_in_linear_time() -> None:
    """In quadratic time each would take minutes; the process may have 60 s of CPU time."""
    resource = pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", LONG], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("read\n", 0), done.stderr[-500:]


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"shared_bytes": 1.5}, TypeError, "shared_bytes is a whole number, not 1.5"),
        ({"shared_bytes": -4}, simulator.LaunchError, "shared_bytes cannot be negative"),
        ({"step_limit": 0}, simulator.LaunchError, "step_limit is 1 at least, not 0"),
        ({"heap_bytes": -1}, simulator.LaunchError, "heap_bytes is 0 at least"),
        ({"grid": (math.inf,)}, simulator.LaunchError, "grid must be one to three whole numbers"),
        ({"arch": "sm_1"}, ValueError, "'sm_1' is no architecture known here"),
    ],
)
def test_what_no_launch_can_have(how: Any, error: type[Exception], words: str) -> None:
    shape = {"grid": 1, "block": 32, "args": [np.zeros(32, np.int32)]}
    with pytest.raises(error, match=words):
        simulator.launch(Kernel.from_ptx(ptx("")), **shape | how)


def test_a_file_is_no_kernel() -> None:
    given: Any = "my.cu"
    with pytest.raises(TypeError, match=r"a launch takes a Kernel .*, not str"):
        simulator.launch(given, 1, 32, [])


def test_an_architecture_is_one_thing_however_it_is_spelled() -> None:
    source = "__global__ void k() {}"
    made = {name: Kernel.from_cuda(source, "k", name) for name in (90, "90", "sm_90", "compute_90")}
    assert len({kernel.sha256 for kernel in made.values()}) == 1
    assert ".target sm_90a" in Kernel.from_cuda(source, "k", "90a").ptx
    with pytest.raises(ValueError, match="arch: 'fast' is no architecture known here"):
        Kernel.from_cuda(source, "k", "fast")


def test_ptx_may_be_bytes_and_options_no_text() -> None:
    assert Kernel.from_ptx(ptx("").encode() + b"\0").ptx.startswith(HEADER)
    with pytest.raises(TypeError, match="options is a sequence"):
        Kernel.from_cuda("__global__ void k() {}", "k", options="-DN=3")


def test_an_address_that_is_made_of_itself() -> None:
    """Found by the net of mutations: nothing but the loop's own step writes the pointer."""
    text = """
        .version 8.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 count, .param .u64 out) {
            .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>;
            ld.param.u64 %d1, [count]; ld.param.u64 %d2, [out];
            atom.global.add.u32 %r1, [%d1], 1;
            setp.lt.u32 %p, %r1, 1; @%p bra END;
            ld.global.u32 %r2, [%d3]; add.s64 %d3, %d3, 4; st.global.u32 [%d2], %r2;
            END: ret;
        }"""
    arrays = [np.zeros(1, np.uint32), np.zeros(1, np.uint32)]
    run = simulator.launch(Kernel.from_ptx(text), 4, 1, arrays)
    assert {hazard.kind for hazard in run.hazards} >= {"out-of-bounds", "waw-race"}

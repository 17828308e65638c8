"""Declarations and calls that PTX allows, and those that it does not."""

import re

import numpy as np
import pytest

import simulator
from kernels import Kernel, KernelError
from kernels.errors import PtxError, SimulatorError
from simulator.isa.control.control_flow import SIGNATURES
from tests.kernels.ptx.test_refused import LINE, launch


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (".reg .bf16 %b;", "nothing is declared as .bf16: .b16 holds it"),
        (".shared .bf16 s;", "nothing is declared as .bf16"),
        (".reg .v2 .b32 %v;", "vector registers yet"),
        (".shared .b32 s[0];", "'s' has no extent"),
        (".shared .b32 s[];", "'s' has no extent"),
        (".shared .b32 s = 3;", "'s' is in .shared and cannot have an initial value"),
        (".shared .v4 .b64 s;", "'s' is a vector of more than 16 bytes"),
        (".shared .v3 .b32 s;", "cannot read '.v3' here"),
    ],
)
def test_declarations_inside(code: str, words: str) -> None:
    with pytest.raises(PtxError, match=rf"^PTX line {LINE}: .*{words}"):
        launch(code)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (".global .f32 g = 1;", "the whole number 1 for a .f32"),
        (".global .b32 g; .global .b32 g;", "'g' is declared twice"),
        (".local .b32 g;", "'g' is in .local and stands outside of a function"),
        (".visible .entry e(.param .u64 p, .param .u64 p) { ret; }", "'p' is declared twice"),
    ],
)
def test_declarations_outside(code: str, words: str) -> None:
    text = f".version 9.0\n.target sm_90\n{code}\n.visible .entry k() {{ ret; }}\n"
    with pytest.raises((PtxError, KernelError), match=words):
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


def test_declarations_that_are_right() -> None:
    code = ".extern .shared .b8 more[]; .global .f32 g[2] = {1.0, 0f3F800000}; .global .v4 .f32 h;"
    text = f".version 9.0\n.target sm_90\n{code}\n.visible .entry k() {{ ret; }}\n"
    assert simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, []).hazards == []


@pytest.mark.parametrize(
    ("head", "first"),
    [
        (".version 9.0\n.target sm_90\n.global .u32 g = 7;\n", ""),
        (".version 9.0 .target sm_90, debug .address_size 64 .global .u32 g = 7;", ""),
        ('.version 9.0\n.target sm_90\n.file 1 "a.cu", 1, 2 .global .u32 g = 7;', ""),
        ('.version 9.0\n.target sm_90\n.file 1 "/a//b/*.cu" .global .u32 g = 7;', ""),
        (".version 9.0\n.target sm_90\n.global .u32 g = 7;\n", ".loc 1 2 3 "),
        (".version 9.0\n.target sm_90\n.global .u32 g = 7;\n", '.pragma "nounroll // {"; '),
        (
            '.version 9.0 .target sm_90 .file 1 "a.cu" .file 2 "b.cu" .global .u32 g = 7;',
            ".loc 1 2 3, function_name $L_f + 4, inlined_at 2 4 5 ",
        ),
    ],
)
def test_what_follows_on_the_same_line_counts(head: str, first: str) -> None:
    """PTX has statements, not lines; what looks like a comment in a string is none."""
    text = f"""{head} .visible .entry k(.param .u64 out) {{
        .reg .b32 %r; .reg .b64 %p;
        ld.param.u64 %p, [out]; {first}ld.global.u32 %r, [g];
        st.global.u32 [%p], %r; ret; }}"""
    out = np.zeros(1, np.uint32)
    simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [out])
    assert out[0] == 7


def test_files_of_one_line_have_their_names() -> None:
    text = """.version 9.0 .target sm_90 .file 1 "/x//a.cu" .file 2 "b.cu"
        .visible .entry k() { .reg .b32 %r;
        .loc 2 4 5 ld.global.u32 %r, [1]; ret; }"""
    with pytest.raises(PtxError, match=r"b\.cu:4, PTX line 3$"):
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (".loc 1 2;", "expected a number, found ';'"),
        (".loc 1 -2 3", "a file, a line and a column"),
        (".loc 1 2 3, inlined_at 1 2000000000 3", "a file, a line and a column"),
        (".loc 1 2 3, frob 4", "expected 'inlined_at', found 'frob'"),
    ],
)
def test_places_that_are_none(code: str, words: str) -> None:
    with pytest.raises(PtxError, match=rf"^PTX line {LINE}: .*{words}"):
        launch(code)


def test_parameters_in_registers() -> None:
    """Scalars only; whoever calls such functions: ``test_call_arguments``."""
    for declared in (".reg .v2 .b32 x", ".reg .b32 x[2]"):
        text = f".version 9.0\n.target sm_90\n.func f({declared}) {{ ret; }}\n.entry k() {{ ret; }}"
        with pytest.raises(PtxError, match=r"^PTX line 3: "):
            simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


SYMBOLS = """
namespace ns { __constant__ float coeff[4]; }
__device__ int counter, *table[2];
__global__ void k(float* x) {
    x[threadIdx.x] = ns::coeff[threadIdx.x % 4];
    atomicAdd(&counter, 1);
    if (!table[0]) table[1] = &counter;
}
"""


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("name", ["coeff", "ns::coeff", "_ZN2ns5coeffE"])
def test_module_variables_are_given_and_kept_by_name(name: str, build: str) -> None:
    k = Kernel.from_cuda(SYMBOLS, "k", build=build)
    x, given, counter = np.zeros(8, "f4"), np.arange(4, dtype="f4"), np.ones(1, "i4")
    symbols = {name: given, "counter": counter, "table": np.zeros(2, "u8")}
    for _ in range(2):
        assert simulator.launch(k, 1, 8, [x], symbols=symbols, checks="uninitialised").hazards == []
    assert x.tolist() == [0, 1, 2, 3] * 2
    assert counter[0] == 1 + 2 * 8
    assert list(symbols["table"] != 0) == [False, True]
    assert given.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("coef", np.zeros(4, "f4"), "variable 'coef' in the PTX; it has: coeff, counter, table"),
        ("n::coeff", np.zeros(4, "f4"), "no __constant__ or __device__ variable 'n::coeff'"),
        ("coeff", np.zeros(5, "f4"), "'coeff' has 16 bytes, the array 20"),
        ("coeff", np.zeros(4, "i4"), "the kernel takes float, the array is int32"),
        ("coeff", np.zeros(2), "the kernel takes float, the array is float64"),
        ("counter", np.zeros(1, "f4"), "the kernel takes int, the array is float32"),
        ("counter", "3", "symbol 'counter' is int; cannot convert str '3'"),
        ("counter", 1 << 40, "1099511627776 does not fit in 32 bits"),
        ("coeff", (1, 2, 3), "'coeff' takes 4 values (x, y, z, w), not 3"),
    ],
)
def test_a_symbol_that_does_not_fit_is_named(name: str, array: object, words: str) -> None:
    k, x = Kernel.from_cuda(SYMBOLS, "k"), np.zeros(8, "f4")
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        simulator.launch(k, 1, 8, [x], symbols={name: array})


def test_no_two_symbols_share_memory() -> None:
    k, x = Kernel.from_cuda(SYMBOLS, "k"), np.zeros(8, "f4")
    for symbols in ({"coeff": x[4:]}, {"ns::coeff": x[:4].copy(), "coeff": x[:4].copy()}):
        with pytest.raises(ValueError, match=r"overlaps another array|is given twice"):
            simulator.launch(k, 1, 8, [x], symbols=symbols)


def test_a_cooperative_launch_fits_a_gpu() -> None:
    with pytest.raises(SimulatorError, match=r"8,193 blocks of 64 threads.*no GPU holds so many"):
        simulator.launch(
            Kernel.from_cuda(SYMBOLS, "k"), 8193, 64, [np.zeros(64, "f4")], cooperative=True
        )


@pytest.mark.parametrize(
    ("version", "target", "words"),
    [
        ("6.0", "sm_70", ""), ("5.0", "sm_70", "line 2: .target sm_70 needs .version 6.0, not 5.0"),
        ("7.8", "sm_90", ""), ("7.7", "compute_90", "compute_90 needs .version 7.8, not 7.7"),
        ("7.8", "sm_90a", "needs .version 8.0"), ("8.0", "sm_90, texmode_independent", ""),
        ("8.6", "sm_100f", "needs .version 8.8"), ("8.8", "sm_100f, sm_103", ""),
        ("8.9", "sm_90", "there is no PTX of .version 8.9"), ("5.2", "sm_60", "no PTX of .version"),
        ("0.9", "sm_10", "no PTX of .version"), ("9.3", "sm_90", ""), ("99.9", "sm_90", "no PTX"),
        ("9.0", "sm_91", "there is no .target sm_91"), ("9.0", "sm_80a", "no .target sm_80a"),
        ("9.0", "sm_90, sm_81", "no .target sm_81"), ("9.0", "sm_90, fast", "no .target fast"),
    ],
)  # fmt: skip
def test_versions_and_targets_that_go_together(version: str, target: str, words: str) -> None:
    """As ptxas 13.0 has it, which knows no version after 9.0: the compilers of those are newer."""
    text = f".version {version}\n.target {target}\n.visible .entry k() {{ ret; }}\n"
    if not words:
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])
        return
    with pytest.raises(PtxError, match=re.escape(words)):
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


_PASSED = (
    ".param .b64 p; .param .b64 q; .param .b32 w; .param .f64 f; .param .align 8 .b8 s[8]; "
    ".param .align 4 .b8 t[8]; .local .b64 l;"
)


def _caller(call: str, own: str = "own") -> Kernel:
    """A kernel that makes a call, on its text's line 6."""
    system = "".join(f".extern .func {name};" for name in SIGNATURES if name != own)
    return Kernel.from_ptx(
        f".version 9.0\n.target sm_90\n{system}"
        f".func (.param .b64 r) {own}(.param .b64 a, .param .align 8 .b8 b[8]) {{ ret; }}\n"
        f".visible .entry k(.param .u64 out) {{ .reg .b64 %x;\n{{ {_PASSED} mov.b64 %x, 0; "
        f"st.param.b64 [p], %x; st.param.b64 [f], %x; st.param.b64 [s], %x;\ncall {call};\n}}"
        " ret; }",
        "k",
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("(q), malloc", "'malloc' has 1 parameters, not 0"),
        ("(q), malloc, (p, p)", "'malloc' has 1 parameters, not 2"),
        ("(q), malloc, (w)", "'w' is not what 'malloc' has as its parameter"),
        ("(q), malloc, (f)", "'f' is not what 'malloc'"),
        ("(w), malloc, (p)", "'w' is not what 'malloc' has as its result"),
        ("(q, p), malloc, (p)", "'malloc' has 1 results, not 2"),
        ("(q), malloc, (%x, %x)", "'malloc' has 1 parameters, not 2"),
        ("(q), malloc, (l)", "'l' is no .param variable"),
        ("(q), malloc, (nowhere)", "'nowhere' is no .param variable"),
        ("(q), malloc, (out)", "'out' is no .param variable"),
        ("(q), free, (p)", "'free' has 0 results, not 1"),
        ("free", "'free' has 1 parameters, not 0"),
        ("free, (s)", "'s' is not what 'free'"),
        ("(w), vprintf, (p)", "'vprintf' has 2 parameters, not 1"),
        ("(q), vprintf, (p, p)", "'q' is not what 'vprintf' has as its result"),
        ("(w), vprintf, (p, w)", "'w' is not what 'vprintf'"),
        ("__assertfail", "'__assertfail' has 5 parameters, not 0"),
        ("__assertfail, (p, p, p, p, p)", "'p' is not what '__assertfail'"),
        ("(w), __assertfail, (p, p, w, p, p)", "'__assertfail' has 0 results, not 1"),
        ("(q), own", "'own' has 2 parameters, not 0"),
        ("own, (p, s)", "'own' has 1 results, not 0"),
        ("(q), own, (w, s)", "'w' is not what 'own'"),
        ("(q), own, (s, s)", "'s' is not what 'own'"),
        ("(q), own, (p, t)", "'t' is not what 'own'"),
        ("(q), own, (p, p)", "'p' is not what 'own'"),
        ("(%x), own, (p, %x)", "a .b64 is passed where the function has b (.b8[8])"),
    ],
)
def test_calls_that_do_not_fit(call: str, words: str) -> None:
    """What is called gets as many and as wide parameters as it has."""
    with pytest.raises(PtxError, match=f"{re.escape(words)}.*: PTX line 6$"):
        simulator.launch(_caller(call), 1, 1, [np.zeros(1, np.int32)])


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_function_of_the_users_with_the_name_of_the_systems(name: str) -> None:
    with pytest.raises(PtxError, match=r"give yours another\): PTX line 6$"):
        simulator.launch(_caller(f"(q), {name}, (p, s)", name), 1, 1, [np.zeros(1, np.int32)])


@pytest.mark.parametrize(
    "call",
    ["(q), malloc, (p)", "malloc, (p)", "free, (p)", "(q), own, (f, s)", "(q), own, (p, s)"],
)
def test_calls_that_fit(call: str) -> None:
    assert not simulator.launch(_caller(call), 1, 1, [np.zeros(1, np.int32)]).hazards


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (".entry k() .maxntid 32, 1, 1 .minnctapersm 2", ""), (".entry k() .noreturn", ".noreturn"),
        (".entry k() .maxntid 32, 1, 1 .noreturn", ".noreturn"),
        (".entry k() .abi_preserve 4", ".abi_preserve"),
        (".func f() .noreturn", ""), (".func f(.param .b32 a) .noreturn", ""),
        (".func f() .abi_preserve 4", ""), (".func f() .noreturn .abi_preserve 4", ""),
        (".func f() .abi_preserve 4 .noreturn", ".noreturn"),
        (".func f() .noreturn .noreturn", ".noreturn"),
        (".func (.param .b32 r) f() .noreturn", ".noreturn"), (".noreturn .func f()", ".noreturn"),
        (".func f() .maxntid 32", ".maxntid"), (".func f() .minnctapersm 2", ".minnctapersm"),
    ],
)  # fmt: skip
def test_directives_of_entries_and_functions(head: str, words: str) -> None:
    """As ptxas 13.0 has them: ``.noreturn`` is of functions that give nothing, and comes first."""
    other = "" if ".entry" in head else ".visible .entry k() { ret; }\n"
    text = f".version 9.0\n.target sm_90\n{head} {{ ret; }}\n{other}"
    if not words:
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])
        return
    with pytest.raises(PtxError, match=rf"^PTX line 3: cannot read '{re.escape(words)}'"):
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


@pytest.mark.parametrize("value", [True, 1, 2, -1, 255, 256, np.uint8(7)])
def test_a_bool_is_true_or_false(value: object) -> None:
    """Whatever number it is made of, as ``k<<<...>>>(out, 2)`` has it."""
    source = "__global__ void k(int* out, bool b, const bool c) { *out = b + 10 * c; }"
    out = np.zeros(1, np.int32)
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [out, value, 0])
    assert out[0] == 1
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [out, 0, value])
    assert out[0] == 10

"""What cannot run: one line of error, on stderr alone."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from kernels import Kernel, KernelError
from tests.support.command_line import SCALE, SCALE_ARGS, error_of, tilescope

SOURCE = (
    SCALE
    + """\
struct Pair { float* x; int n; };
__global__ void structure(Pair s) { s.x[0] = s.n; }
"""
)


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    file = tmp_path / "scale.cu"
    file.write_text(SOURCE)
    return file


@pytest.mark.slow_cases("...No such file")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("matmul_tield",), "did you mean matmul_tiled"),
        (("nowhere.cu",), "no file 'nowhere.cu'"),
        (("nowhere.ptx",), "no file 'nowhere.ptx'"),
        (("examples/row_sum.cu",), "no file 'examples/row_sum.cu'; did you mean 'examples/row_su"),
        (("matmul_tiled", "--size", "3x3"), "takes a size as in MxNxK, not 2 numbers"),
        (("matmul_tiled", "--size", "big"), "size 'big' is not whole numbers"),
        (("matmul_tiled", "--size", "9000000"), "not enough memory"),
        (("matmul_tiled", "--tile", "7"), "there are: 2, 4, 8, 16, 32"),
        (("matmul_tiled", "--tile", "x"), "'x' is not a valid integer"),
        (("matmul_tiled_exact", "--size", "20"), "multiple of 16"),
        (("matmul_tiled", "--sise", "20"), "no such option --sise; did you mean --size?"),
        (("matmul_tiled", "--grid", "2"), "sets its own launch shape"),
        (("matmul_tiled", "12"), "makes its own arguments"),
        (("matmul_tiled", "--compare", "other"), "no kernel 'other'"),
        (
            ("matmul_tiled", "--gpu", "h200", "--json", "-", "--plot", "-"),
            "--json and --plot cannot",
        ),
        (
            ("matmul_tiled", "--compare", "my.cu fast"),
            "matmul_tiled makes its own arguments, my.cu",
        ),
        (("matmul_tiled", "--checks", "luck"), "unknown check 'luck'"),
        (("matmul_tiled", "--schedule", "luck"), "unknown schedule 'luck'"),
        (("matmul_tiled", "--seed", "-1"), "--seed must not be negative"),
        (("matmul_tiled", "--build", "both"), "'both' is not one of"),
        (("matmul_tiled", "--arch", "compute_1"), "arch: 'compute_1' is no architecture known"),
        (("matmul_tiled", "--json", "no/such/folder/x"), "no/such/folder/x: No such file"),
        ((), "missing argument"),
    ],
)
def test_bad_command_lines(words: tuple[str, ...], message: str) -> None:
    said = error_of("run", *words)
    assert message in said
    assert "\n" not in said


@pytest.mark.slow_cases("...in this source", "words1-its __global__...")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (SCALE_ARGS, "which kernel of"),
        (("nope", *SCALE_ARGS), "its __global__ functions: scale<...>, reach, structure"),
        (
            ("reach", "--grid", 1, "--block", 1, "f32[8]"),
            "takes 2 arguments, not 1: float* x, int offset",
        ),
        (("reach", "--grid", 1, "--block", 1, "f32[8]", "f32[8]"), "offset is int by value; it"),
        (("reach", "--grid", 1, "--block", 1, "f32[8]=1e39", 0), "1e39 does not fit in float32"),
        (
            ("reach", "--grid", 1, "--block", 1, "f32[8]", "f32:1e39"),
            "1e39 does not fit in float32",
        ),
        (("structure", "--grid", 1, "--block", 1, 1), "s is a struct of 16 bytes; give"),
        (("reach", "--grid", 1, "--block", 1, "f32[8]", 1.5), "offset is int"),
        (("reach", "--grid", 1, "--block", 1, 8, 0), "x is a pointer (float*), not the number 8"),
        (("reach", "--grid", 1, "--block", 1, 8, 0), "as in f32[1024] or"),
        (("reach", "--grid", 1, "--block", 1025, "f32[8]", 0), "1025 threads in a block"),
        (("reach", "--grid", 1, "--block", 1, "--shared", 300000, "f32[8]", 0), "shared memory"),
        (("reach", "--grid", 1, "f32[8]", 0), "--block is missing"),
        (("reach", "--grid", "1;2", "--block", 1, "f32[8]", 0), "--grid '1;2'"),
        (("reach", "--grid", 0, "--block", 1, "f32[8]", 0), "positive whole numbers, not 0"),
        (("reach", "--grid", 3, "--block", 1, "--cluster", 2, "f32[8]", 0), "3x1x1 is no multiple"),
        (("reach", "--grid", 1, "--block", 1, "--shared", -5, "f32[8]", 0), "'--shared': -5"),
        (("reach", "--close", "a,b"), "give rtol,atol"),
        (
            ("reach", "--grid", 1, "--block", 1, "--reference", "math:sin", "f32[8]", 0),
            "--reference 'math:sin' failed: TypeError",
        ),
        (("reach", "--size", 8), "belong to library kernels"),
        (("scale<float>", *SCALE_ARGS, "--compare", "other"), "no kernel 'other' in this source"),
        (("scale<float>", *SCALE_ARGS, "--compare", "'"), '--compare "\'": No closing quotation'),
        (("scale<float>", *SCALE_ARGS, "--compare", "reach --gird 2"), "did you mean --grid?"),
        (
            ("scale<float>", *SCALE_ARGS, "--compare", "reach --grid"),
            "'--grid' requires an argument",
        ),
    ],
)
def test_bad_launches_of_a_file(scale: Path, words: tuple[Any, ...], message: str) -> None:
    said = error_of("run", scale, *words)
    assert message in said
    assert "\n" not in said
    assert not re.search(r"_Z\d|_param_\d|\(\d+,", said)  # names of the PTX, Python's tuples


def test_a_compile_error_points_at_the_users_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.cu"
    file.write_text("__global__ void bad(float* x) {\n    x[0] = oops;\n}\n")
    said = error_of("run", file, "bad", "--grid", 1, "--block", 1, "f32[1]")
    assert "bad.cu(2)" in said
    assert '"oops" is undefined' in said


@pytest.mark.parametrize("head", ["", "template <int N> "])
def test_errors_of_the_compiler_precede_questions(head: str, tmp_path: Path) -> None:
    """Also if the launch lacks arguments, or the kernel is a template that nothing instantiates."""
    file = tmp_path / "bad.cu"
    kernel = f"{head}__global__ void bad(float* x) {{\n    x[0] = 1\n}}\n"
    for host in (
        "",
        "int main(int n, char**) { float* x; bad" + "<3>" * bool(head) + "<<<n, 1>>>(x); }",
    ):
        file.write_text(kernel + host)
        said = error_of("check", file)
        assert "bad.cu(3)" in said
        assert "missing" not in said
        assert ("(compiled: bad<" in said) == bool(head)


def test_a_file_that_exec_does_not_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.cu").write_text(KERNEL)
    assert error_of("exec", "progam.cu") == "no file 'progam.cu'; did you mean 'program.cu'?"
    assert error_of("progam.cu", "16") == "no file 'progam.cu'; did you mean 'program.cu'?"
    assert "is a folder" in error_of("exec", ".")


KERNEL = "__global__ void k(float *x) { *x = 1; }\n"


@pytest.mark.parametrize("suffix", [".cu", ".ptx"])
@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_told(suffix: str, coding: str, tmp_path: Path) -> None:
    file = tmp_path / f"wide{suffix}"
    file.write_bytes(f"\ufeff{KERNEL}".encode(coding))
    words = ("--grid", 1, "--block", 1, "f32[1]")
    for command in ("run", "check"):
        assert error_of(command, file, *words) == f"{file} is UTF-16: save it as UTF-8"
    file.write_bytes(f"\ufeff{KERNEL}".encode())
    assert tilescope("run", file, *words).exit_code == (0 if suffix == ".cu" else 2)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no devices as files")
def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cu")
    for file in ("/dev/zero", tmp_path / "pipe.cu"):
        for words in (("k",), (), ("k", "--launch", 1)):
            said = error_of("check", file, *words, "--grid", 1, "--block", 1)
            assert "not a regular file" in said or "no launches" in said or "no file" in said
    with pytest.raises(KernelError, match="not a regular file"):
        Kernel.from_cuda("/dev/zero", "k")
    (tmp_path / "large.cu").touch()
    os.truncate(tmp_path / "large.cu", 1 << 29)
    assert "are too many" in error_of("check", tmp_path / "large.cu", "k")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Of a compiler's complaints the first are shown."""
    (tmp_path / "binary.cu").write_bytes(bytes(range(256)) * 40)
    words = ("k", "--grid", 1, "--block", 1)
    assert "is no CUDA C++ as text (UTF-8)" in error_of("run", tmp_path / "binary.cu", *words)
    body = "\n".join(f"    missing{i} = 1;" for i in range(200))
    (tmp_path / "many.cu").write_text(f"__global__ void k() {{\n{body}\n}}\n")
    said = error_of("run", tmp_path / "many.cu", *words).splitlines()
    assert "many.cu(2)" in said[0]
    assert len(said) == 25
    assert re.fullmatch(r"\.\.\. and \d+ more lines", said[-1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("frobnicate",), "no such command 'frobnicate'; there are: run, view, predict"),
        (("chekc",), "'chekc'; did you mean check?"),
        (("_lunch",), "'_lunch'; to run a kernel: "),  # _launch is the tools' own
        (("README.md", "--grid", 1), "'README.md'; to run a kernel: tilescope run README.md ..."),
        (("--verison",), "no such option"),
        (
            ("README.md", "--foo=1"),
            "no such option --foo; what the file holds: tilescope READ",
        ),
        (("README.md", "k", "-x"), "no such option -x; what"),
    ],
)
def test_unknown_command(words: tuple[Any, ...], message: str) -> None:
    assert message in error_of(*words)

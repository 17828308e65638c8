"""Several launches on the same arrays, from a file."""

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import tilescope
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "pipeline.toml"
SOURCE = """
__device__ int total;
__global__ void add(const int *x) { atomicAdd(&total, x[threadIdx.x]); }
__global__ void racy(int *x) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void copy(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x]; }
"""
LAUNCH = """
[[launch]]
file = "k.cu"
kernel = "{}"
grid = 1
block = 64
args = [{}]
"""
ARRAYS = '[arrays]\nx = "i32[64]=arange"\ny = "i32[64]"\nt = "i32[1]=5"\n'
ADD = LAUNCH.format("add", '"x"') + 'symbols = { total = "t" }\n'


def run(folder: Path, text: str, command: str = "run", *options: object) -> tuple[int, str, str]:
    (folder / "k.cu").write_text(SOURCE)
    (folder / "some.toml").write_text(text)
    with contextlib.chdir(folder):
        done = tilescope(command, "some.toml", *options)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.slow_cases("check")
@pytest.mark.parametrize("command", ["run", "check"])
def test_the_example(command: str) -> None:
    done = tilescope(command, EXAMPLE)
    assert done.exit_code == 0
    assert "samples is within its error bound" in done.stdout
    assert "pipeline.toml:16" in done.stdout


def test_arrays_and_variables_stay(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, ARRAYS + ADD + ADD + f'[expect]\nt = "{5 + 2 * 2016}"\n')
    assert code == 0
    assert out.startswith("2 launches of 1 kernel; no hazards")
    code, out, _ = run(tmp_path, ARRAYS + ADD + '[expect]\nt = "0"\n')
    assert code == 1
    assert "t is WRONG" in out


@pytest.mark.slow_cases("check")
@pytest.mark.parametrize("command", ["run", "check"])
def test_what_no_launch_wrote_is_not_read(tmp_path: Path, command: str) -> None:
    wrote, read = LAUNCH.format("copy", '"x", "y"'), LAUNCH.format("copy", '"y", "x"')
    assert run(tmp_path, ARRAYS + wrote + read, command)[0] == 0
    for launches in (read + wrote, wrote.replace("= 64", "= 48") + read):
        code, out, _ = run(tmp_path, ARRAYS + launches, command)
        assert "uninitialised read of" in out
        assert code == 1


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("a", "b", True), ("a", "a", False), ("a", "", False), ("", "b", False),
        ("a", 'b"\nwait = ["a"]\n#', False), ("a", 'b"\nwait = ["b"]\n#', True),
    ],
)  # fmt: skip
def test_order_of_streams(command: str, one: str, other: str, found: bool, tmp_path: Path) -> None:
    """A stream and the default stream wait for each other; two streams only where it says so."""
    launches = [
        (LAUNCH.format("copy", '"x", "y"'), one),
        (LAUNCH.format("copy", '"y", "z"'), other),
    ]
    text = ARRAYS + 'z = "i32[64]"\n'
    text += "".join(made + f'stream = "{name}"\n' * bool(name) for made, name in launches)
    code, out, err = run(tmp_path, text, command)
    assert code == int(found), err
    said = "the launch of copy reads x[0], which the launch of copy writes: nothing orders the two"
    assert (said in " ".join(out.split())) == found
    if found:
        assert re.search(r"some\.toml:15 .*\n.*some\.toml:7 ", out)


def test_a_wait_for_no_stream(tmp_path: Path) -> None:
    text = ARRAYS + LAUNCH.format("copy", '"x", "y"') + 'stream = "a"\nwait = ["b", "a"]\n'
    code, _, err = run(tmp_path, text)
    assert code == 2
    assert "launch 1: wait = 'b': no launch is in such a stream; there are: a, default" in err


def test_a_hazard_and_its_fix(tmp_path: Path) -> None:
    text = ARRAYS + LAUNCH.format("copy", '"x", "y"') + LAUNCH.format("racy", '"x"')
    code, out, _ = run(tmp_path, text, "check")
    assert code == 1
    assert "== racy" in out
    assert "__syncthreads() after line 6: verified" in out
    code, _, _ = run(tmp_path, text, "run", "--json", tmp_path / "out.json", "-q")
    assert code == 1
    content = json.loads((tmp_path / "out.json").read_text())
    assert [launch["line"] for launch in content["launches"]] == [6, 13]
    assert content["launches"][1]["hazards"]


def test_expected_values_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "right.npy", np.arange(64, dtype=np.int32))
    text = ARRAYS + LAUNCH.format("copy", '"x", "y"')
    assert run(tmp_path, text + f'[expect]\ny = "@{tmp_path}/right.npy"\n')[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "Invalid value"),
        (ARRAYS, "no [[launch]]"),
        ("wrong = 1\n" + ADD, "no such key: wrong"),
        (ADD.replace("block", "blocks"), "no such key: blocks"),
        (ARRAYS + ADD.replace("grid = 1\n", ""), "launch 1: no 'grid'"),
        (ARRAYS + ADD.replace("grid = 1", "grid = 0"), "0 is no shape"),
        (ARRAYS + ADD.replace('"x"', '"z"'), "launch 1: argument 'z' is neither"),
        (ARRAYS + ADD.replace('"x"', "1979-05-27"), "is no argument"),
        ('[arrays]\nx = "3"\n' + ADD, "x = '3' is no array"),
        (ARRAYS + ADD + '[expect]\nz = "1"\n', "no array 'z'"),
        (ARRAYS + ADD.replace("k.cu", "none.cu"), "none.cu"),
        (ARRAYS + ADD.replace("k.cu", "."), "launch 1: no file"),
        (ARRAYS + ADD.replace("k.cu", "/dev/zero"), "launch 1: no file"),
        (ARRAYS + ADD.replace('"t"', '"x"'), "launch 1: symbol 'total'"),
        (ARRAYS + ADD.replace("total", "other"), "no __constant__ or __device__ variable 'other'"),
        (ARRAYS + LAUNCH.format("copy", '"x"'), "launch 1: "),
        (ARRAYS + ADD + '[expect]\ny = "i32[3]=1"\n', "another shape"),
        ("seed = -1\n" + ARRAYS + ADD, "seed = -1"),
        ("launch = [3]\n", "a launch is a table"),
        ("x = " + "[" * 5000 + "]" * 5000, "too deep"),
    ],
)
def test_bad_files(text: str, message: str, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, text)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("value", ["3", "-1.5", '"x"', "[[]]", "{a = 1}", "true", "1979-05-27"])
@pytest.mark.parametrize(
    ("key", "text"),
    [(key, ADD + f"{key} = ?\n") for key in ("shared", "cooperative", "cluster", "options")]
    + [(key, re.sub(rf"(?m)^{key} = .*", f"{key} = ?", ADD))
       for key in ("file", "kernel", "grid", "block", "args", "symbols")]
    + [(key, f"{key} = ?\n" + ADD) for key in ("launch", "expect", "close", "seed")]
    + [("x", '[arrays]\nt = "i32[1]"\nx = ?\n' + ADD), ("t", ADD + "[expect]\nt = ?\n")],
)  # fmt: skip
def test_values_of_any_type(key: str, text: str, value: str, tmp_path: Path) -> None:
    """One line that names the key, or a launch: never a traceback."""
    before, after = ("", ARRAYS) if text.startswith(f"{key} =") else (ARRAYS, "")
    if key == "x":
        before = ""
    code, _, err = run(tmp_path, before + text.replace("?", value) + after)
    assert code in (0, 1, 2)
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1 or code < 2


def test_one_page_of_all_launches(tmp_path: Path) -> None:
    page = tmp_path / "all.html"
    done = tilescope("view", str(EXAMPLE), "-q", "-o", str(page))
    assert done.exit_code == 0, done.output
    launches = EXAMPLE.read_text().count("[[launch]]")
    assert page.read_text().count("<button data-page=") == launches


@pytest.mark.parametrize(
    ("command", "words", "named"),
    [
        ("run", ["--expect", "y=7"], "--expect is"),
        ("run", ["--reference", "a:b", "--compare", "add"], "--reference, --compare are"),
        ("run", ["--size", 64, "--tile", 8], "--size, --tile are"),
        ("run", ["--grid", 3, "--block", 4, "--shared", 4], "--grid, --block, --shared are"),
        ("run", ["--gpu", "h200"], "--gpu is"),
        ("run", ["-D", "X=1", "--seed", 3], "--seed, -D are"),
        ("run", ["--launch", 1], "--launch is"),
        ("run", ["--by-line"], "--by-line is"),
        ("check", ["--arch", "90", "--fix"], "--arch, --fix are"),
        ("check", ["--diff"], "--diff is"),
        ("check", ["--demonstrate"], "--demonstrate is"),
        ("check", ["--cooperative"], "--cooperative is"),
        ("view", ["--block-at", "0", "--symbol", "x=i32[1]"], "--symbol, --block-at are"),
        ("view", ["--compare", "add"], "--compare is"),
    ],
)
def test_options_that_are_not_used_are_refused(
    command: str, words: list[object], named: str, tmp_path: Path
) -> None:
    code, out, err = run(tmp_path, ARRAYS + ADD, command, *words)
    why = f"{named} not for a .toml file, which says what it launches, and how"
    assert (code, out, err) == (2, "", f"error: {why}\n")


@pytest.mark.parametrize("command", ["run", "check", "view"])
def test_words_behind_a_pipeline_are_refused(command: str, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, ARRAYS + ADD, command, "add", "i32[64]")
    assert (code, err) == (2, "error: 'add': some.toml has its launches' own arguments\n")


@pytest.mark.parametrize("option", ["--sarif", "--junit", "--write-baseline"])
def test_what_is_for_a_project_alone(option: str, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, ARRAYS + ADD, "check", option, "out")
    assert code == 2
    assert "for one kernel, or for pyproject.toml" in err


@pytest.mark.parametrize("command", ["predict", "barriers", "ptx", "sweep"])
def test_commands_of_one_kernel_say_which_take_a_pipeline(command: str, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, ARRAYS + ADD, command)
    assert (code, err) == (2, "error: some.toml: .toml files are for run, check and view\n")

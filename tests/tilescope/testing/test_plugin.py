"""The pytest plugin: the fixture, the failure text, the JSON, and what tilescope init writes."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from kernels import Kernel, library
from tests.support.command_line import error_of, tilescope
from tests.support.paths import ROOT
from tilescope.plugin import Simulate, assert_clean

pytest_plugins = ["pytester"]

KERNELS = """\
__global__ void neighbour(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = out[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void flags(int* out) {
    if (threadIdx.x % 32 == 0)
        out[0] = 1;
}
__global__ void twice(float* x) {
    x[threadIdx.x] *= 2.0f;
}
"""


def run_pytest(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """pytest in a process of its own, with the plugin, installed or not."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nfilterwarnings = ['error']\n")
    known = {point.name for point in metadata.entry_points(group="pytest11")}
    plugin = () if "tilescope" in known else ("-p", "tilescope.plugin")
    return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *words)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project next to a file of kernels."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    pytester.makefile(".cu", my=KERNELS)
    return pytester


@pytest.mark.slow
def test_clean_and_not(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_my="""
        import numpy as np
        import pytest
        from simulator import ArgumentWarning
        from tilescope.plugin import assert_clean

        def test_clean(simulate):
            x = np.arange(64, dtype=np.float32)
            run = simulate("my.cu", 1, 64, [x], entry="twice")
            assert_clean(run)
            assert x[3] == 6
            assert simulate.runs == [run]

        def test_racy(simulate):
            assert simulate.runs == []
            run = simulate("my.cu", 1, 64, [np.zeros(64, np.float32)], entry="neighbour")
            simulate.assert_clean(run)

        def test_warned(simulate):
            with pytest.warns(ArgumentWarning, match="float64"):
                run = simulate("my.cu", 1, 64, [np.ones(64)], entry="twice")
            assert len(run.warnings) == 1

        def test_without_launches():
            pass
        """
    )
    result = run_pytest(project, "--tilescope-json", "runs.json")
    result.assert_outcomes(passed=3, failed=1)
    text = "\n".join(result.outlines)
    assert "1 hazard in neighbour" in text or "2 hazards in neighbour" in text
    assert "Missing barrier: shared `s` is read" in text
    assert "my.cu:4  out[threadIdx.x] = s[63 - threadIdx.x];" in text
    assert "plugin.py" not in text  # the report, not the plugin's own lines
    content = json.loads((project.path / "runs.json").read_text())
    assert content["schema"] == 1
    assert [run["test"] for run in content["runs"]] == [
        "test_my.py::test_clean", "test_my.py::test_racy", "test_my.py::test_warned",
    ]  # fmt: skip
    assert [bool(run["hazards"]) for run in content["runs"]] == [False, True, False]


@pytest.mark.slow
def test_the_example_that_hypothesis_found_is_shown(project: pytest.Pytester) -> None:
    """With the line of the test; and so is what else is noted of a failure."""
    project.makefile(".cu", past="""
        __global__ void past(int* x, int n) { if (threadIdx.x <= n) x[threadIdx.x] = 1; }
        """)  # fmt: skip
    project.makepyfile(
        """
        import numpy as np
        from hypothesis import Phase, given, settings, strategies as st

        @settings(max_examples=5, deadline=None, database=None, phases=[Phase.generate])
        @given(st.integers(1, 20))
        def test_lengths(simulate, length):
            run = simulate("past.cu", 1, 32, [np.zeros(length, np.int32), length])
            simulate.assert_clean(run)  # here

        def test_noted(simulate):
            run = simulate("past.cu", 1, 32, [np.zeros(7, np.int32), 7])
            try:
                simulate.assert_clean(run)
            except BaseException as error:
                error.add_note("with seven of them")
                raise

        def test_unchecked(simulate):
            run = simulate("past.cu", 1, 32, [np.zeros(7, np.int32), 7], checks="none")
            simulate.assert_clean(run)  # there

        def test_misspelt(simulate):
            simulate("passed.cu", 1, 32, [])  # nowhere
        """
    )
    result = run_pytest(project)
    result.assert_outcomes(failed=4)
    text = "\n".join(result.outlines)
    assert "simulate=simulate" in text
    assert re.search(r"^E +length=\d+,", text, re.M)
    assert "write out of bounds: x[" in text
    assert "with seven of them" in text
    for comment in ("here", "there", "nowhere"):
        assert re.search(rf"^> .*# {comment}$", text, re.M)
    assert "plugin.py" not in text


@pytest.mark.slow
def test_files_are_found_beside_the_test(project: pytest.Pytester) -> None:
    """Wherever pytest is started; what is not there is looked for in the working folder."""
    below = project.mkpydir("below")
    (below / "near.cu").write_text(KERNELS)
    (below / "my.cu").write_text(KERNELS.replace("2.0f", "3.0f"))
    (below / "test_near.py").write_text(
        """\
import numpy as np
import pytest
from pathlib import Path
@pytest.mark.parametrize('file, factor', [('near.cu', 2), (Path('my.cu'), 3)])
def test_beside(simulate, file, factor):
    x = np.ones(64, np.float32)
    simulate(file, 1, 64, [x], entry='twice')
    assert (x == factor).all()
def test_missing(simulate):
    with pytest.raises(FileNotFoundError, match='lost.cu.*below'):
        simulate('lost.cu', 1, 64, [], entry='twice')
"""
    )
    (project.path / "test_above.py").write_text(
        """\
import numpy as np
def test_above(simulate):
    x = np.ones(64, np.float32)
    simulate('my.cu', 1, 64, [x], entry='twice')
    assert (x == 2).all()
"""
    )
    run_pytest(project).assert_outcomes(passed=4)
    (below / "my.cu").unlink()
    run_pytest(project, "-k", "beside and 3").assert_outcomes(failed=1)  # the other file's kernel


@pytest.mark.slow
def test_the_json_is_written_even_if_nothing_ran(project: pytest.Pytester) -> None:
    project.makepyfile("def test_nothing(): pass")
    run_pytest(project, "--tilescope-json", "runs.json").assert_outcomes(passed=1)
    assert json.loads((project.path / "runs.json").read_text())["runs"] == []


@pytest.mark.slow
def test_json_that_cannot_be_written_is_refused_at_the_start(project: pytest.Pytester) -> None:
    project.makepyfile("def test_one(): pass")
    for file, why in (("none/runs.json", "No such file"), (".", "Is a directory")):
        result = run_pytest(project, "--tilescope-json", file)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"ERROR: --tilescope-json {file}: {why}" in result.stderr.str()
        assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_json_that_cannot_be_written_at_the_end_leaves_the_report(project: pytest.Pytester) -> None:
    (project.path / "into").mkdir()
    project.makepyfile(
        "import shutil\ndef test_one(): shutil.rmtree('into')\ndef test_two(): 1 / 0"
    )
    result = run_pytest(project, "--tilescope-json", "into/runs.json")
    result.assert_outcomes(passed=1, failed=1)
    assert "not written: into/runs.json: No such file" in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


@pytest.mark.slow
def test_the_json_has_the_runs_of_all_workers(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    project.makepyfile(
        """
        import numpy as np
        import pytest

        @pytest.mark.parametrize("n", range(4))
        def test_twice(simulate, n):
            simulate("my.cu", 1, 32, [np.ones(32, np.float32)], entry="twice")
        """
    )
    run_pytest(project, "-n", "2", "--tilescope-json", "runs.json").assert_outcomes(passed=4)
    assert len(json.loads((project.path / "runs.json").read_text())["runs"]) == 4


@pytest.mark.slow
def test_a_start(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``tilescope init`` writes is docs/testing.md's example, and all of it runs."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(project.path)
    result = tilescope("init")
    assert result.exit_code == 0, result.stderr
    names = ["blocksum.cu", "test_blocksum.py", ".github/workflows/kernels.yml"]
    assert [line for line in result.stdout.splitlines() if line.startswith("wrote")] == [
        f"wrote {name}" for name in names
    ]
    docs = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    for name in names:
        assert f"\n{(project.path / name).read_text()}```\n" in docs
    assert "blocksum.cu is there already; nothing was written" in error_of("init")

    run_pytest(project).assert_outcomes(passed=4)
    recipe = (project.path / names[2]).read_text()
    steps = [shlex.split(line) for line in re.findall(r"- run: (.*)", recipe)]
    advice = result.stdout.replace("\\\n", "").replace("--open", "")
    steps += [shlex.split(line) for line in re.findall(r"^  (tilescope .*)", advice, re.M)]
    assert [step[:2] for step in steps] == [
        ["pip", "install"], ["pytest"], ["tilescope", "check"], ["tilescope", "check"],
        ["tilescope", "view"],
    ]  # fmt: skip
    for step in steps[2:]:
        done = tilescope(*step[1:])
        assert done.exit_code == 0, done.stderr
    assert Path("blocksum.sarif").is_file()
    # Its barrier matters: without it the same tests and commands fail, with the report.
    source = Path("blocksum.cu").read_text()
    Path("blocksum.cu").write_text(source.replace("__syncthreads();", ""))
    failed = run_pytest(project, "-k", "is_clean")
    assert failed.ret == 1
    failed.stdout.fnmatch_lines(["*Missing barrier: shared `part` is read*"])
    assert tilescope(*steps[2][1:]).exit_code == 1


def test_importing_the_plugin_is_cheap() -> None:
    code = (
        "import sys, tilescope.plugin; heavy = {'numpy', 'simulator', 'kernels', 'click', 'rich'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- in this process --------------------------------------------------------------------


def test_a_kernel_or_a_file(tmp_path: Path) -> None:
    simulate = Simulate()
    kernel = library.get("matmul_naive").kernel()
    launch = library.get("matmul_naive").launch((8, 8, 8))
    run = simulate(kernel, launch.grid, launch.block, launch.args)
    file = tmp_path / "naive.ptx"
    file.write_text(kernel.ptx)
    shape = (launch.grid, launch.block)
    again = simulate(file, *shape, launch.args, entry=kernel.entry, schedule="warps")
    assert (run.sha256, run.checked) == (again.sha256, again.checked)
    assert again.schedule == "warps"
    assert simulate.runs == [run, again]
    with pytest.raises(TypeError, match="entry belongs to a file"):
        simulate(kernel, 1, 1, [], entry="naive")
    (tmp_path / "my.cu").write_text(KERNELS)
    with pytest.raises(Exception, match=r"which kernel of .*neighbour, flags, twice"):
        simulate(tmp_path / "my.cu", 1, 1, [])


def test_all_that_a_launch_takes(tmp_path: Path) -> None:
    """``arch`` compiles a file, and says of a kernel whose arithmetic tensor cores have."""
    file, simulate, x = tmp_path / "my.cu", Simulate(), np.zeros(1, np.int32)
    file.write_text("__constant__ int c[2];\n__global__ void k(int* x) { *x = c[1]; }\n")
    symbols = {"c": np.array([3, 4], np.int32)}
    run = simulate(file, 1, 1, [x], arch="compute_80", symbols=symbols, stack_bytes=4096)
    kernel = Kernel.from_cuda(file, "k", "compute_80")
    assert (x[0], run.sha256) == (4, kernel.sha256)
    assert not simulate(kernel, 1, 1, [x], arch=90, symbols=symbols).hazards
    with pytest.raises(ValueError, match="arch"):
        simulate(kernel, 1, 1, [x], arch="fast")
    with pytest.raises(TypeError, match="shared"):
        simulate(kernel, 1, 1, [x], shared=4)


def test_what_was_not_checked_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "my.cu").write_text(KERNELS)
    simulate = Simulate()
    args = [np.zeros(64, np.float32)]
    run = simulate(tmp_path / "my.cu", 1, 64, args, entry="twice", checks="none")
    with pytest.raises(pytest.fail.Exception, match="ran without checks"):
        assert_clean(run)


def test_warnings_may_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "my.cu").write_text(KERNELS)
    run = Simulate()(tmp_path / "my.cu", 1, 64, [np.zeros(1, np.int32)], entry="flags")
    assert [hazard.severity for hazard in run.hazards] == ["warning"]
    assert_clean(run, allow_warnings=True)
    with pytest.raises(pytest.fail.Exception, match="every write leaves the same value"):
        assert_clean(run)

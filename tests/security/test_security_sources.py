"""The rest of ``docs/security.md``: CUDA sources, GPU, working folder, cache, arrays, pages."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import CompileError, Kernel
from kernels.compiler import nvrtc
from simulator import SimulatorError
from tests.security.test_security import EVIL, PROGRAMS, check_file, command, ptx
from tilescope.cli.errors import UserError
from tilescope.gpu import ncu
from tilescope.view import show

# -- CUDA sources ---------------------------------------------------------------------------------


def test_a_files_name_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-DN=5.cu").write_text(
        "#ifndef N\n#define N 1\n#endif\n__global__ void k(int* a) { *a = N; }"
    )
    x = np.zeros(1, np.int32)
    run = simulator.launch(Kernel.from_cuda("-DN=5.cu", "k"), 1, 1, [x])
    assert x[0] == 1
    assert [line.file for line in run.by_line()] == ["-DN=5.cu"]


def test_headers_of_a_cuda_source_are_shown(tmp_path: Path) -> None:
    """The user's own, below the folder and from ``-I``; not what inline assembly names."""
    include = tmp_path / "include"
    folder = tmp_path / "source"
    for place in (include, folder):
        place.mkdir()
    body = "__device__ __forceinline__ void {0}(int* a) {{ a[5000] = 1; /* {0} */ }}\n"
    (folder / "near.cuh").write_text(body.format("near"))
    (include / "far.cuh").write_text(body.format("far"))
    (tmp_path / "secret").write_text("sesame\n")
    source = folder / "k.cu"
    source.write_text(
        '#include "near.cuh"\n#include "far.cuh"\n'
        '__global__ void k(int* a) {\n near(a);\n far(a);\n'
        f' asm volatile(".file 77 \\"{tmp_path}/secret\\"\\n .loc 77 1 0\\n"\n'
        '  " st.global.u32 [%0], 1;" :: "l"(a));\n}\n'
    )  # fmt: skip
    kernel = Kernel.from_cuda(source, "k", options=(f"-I{include}",))
    found = simulator.launch(kernel, 1, 1, [np.zeros(4, np.int32)])
    codes = " ".join(line.code for line in found.by_line())
    assert "/* near */" in codes
    assert "/* far */" in codes
    assert not any("secret" in line.file for line in found.by_line())
    assert "sesame" not in codes


def test_host_code_does_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = tmp_path / "k.cu"
    source.write_text(
        f"""\
#include <cstdlib>
struct Early {{ Early() {{ system("touch {mark}"); }} }};
Early early;
__global__ void k(int* a) {{ a[threadIdx.x] = 1; }}
int main() {{ system("touch {mark}"); k<<<1, 32>>>(nullptr); }}
"""
    )
    check_file(source)
    assert not mark.exists()


RACE = """\
__device__ void turn(float* a) {
    __shared__ float s[64];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = s[63 - threadIdx.x];
}
"""


def test_only_fix_writes_to_sources(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    header, source = tmp_path / "turn.cuh", folder / "k.cu"
    header.write_text(RACE)
    source.write_text('#include "../turn.cuh"\n__global__ void k(float* a) { turn(a); }\n')
    words = ("check", str(source), "k", "--grid", "1", "--block", "64", "f32[64]=arange")
    for option in ("--no-fix-search", "--diff"):
        told = command(*words, option)
        assert told.exit_code == 1
        assert header.read_text() == RACE
    assert "turn.cuh" in told.output
    assert "+    __syncthreads();" in told.output
    command(*words, "--fix")
    assert header.read_text().count("\n") == RACE.count("\n") + 1
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["k.cu", "source", "turn.cuh"]


def test_an_include_can_name_any_file(tmp_path: Path) -> None:
    """What the page says a source can do."""
    (tmp_path / "secret").write_text("sesame;\n")
    with pytest.raises(CompileError, match="sesame"):
        Kernel.from_cuda(
            f'#define FILE "{tmp_path}/secret"\n#include FILE\n__global__ void k() {{}}', "k"
        )


# -- the driver, the working folder ---------------------------------------------------------------


@pytest.mark.slow
def test_no_driver_is_loaded(tmp_path: Path) -> None:
    code = f"""\
import sys; from click.testing import CliRunner; from tilescope.cli.main import main
words = {str(PROGRAMS / "leak.ptx")!r}, '--grid', '1', '--block', '32', 'i32[32]'
for name in ('run', 'check', 'barriers'): CliRunner().invoke(main, (name, *words))
CliRunner().invoke(main, ('view', *words, '-o', {str(tmp_path / "p.html")!r}))
print([m for m in sys.modules if 'driver' in m and 'cuda' in m])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert (tmp_path / "p.html").exists()


def test_python_files_of_the_working_folder_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where ncu starts another Python."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(ncu, "find_ncu", lambda: "ncu")
    with monkeypatch.context() as patch:
        patch.setattr(ncu.subprocess, "run", run)
        with pytest.raises(UserError):
            ncu.measure(("--help",), None)
    (started,) = commands
    started = started[started.index(sys.executable) :]
    for name in ("click", "numpy", "tilescope", "json", "kernels"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    done = subprocess.run(started, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--launches" in done.stdout


# -- the cache ------------------------------------------------------------------------------------

SOURCE = "__global__ void k(int* a) {\n a[threadIdx.x] = 7; }\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILESCOPE_CACHE", str(tmp_path / "cache"))
    Kernel.from_cuda(SOURCE, "k")
    (file,) = (tmp_path / "cache").iterdir()
    assert file.suffix == ".json"
    return file


GOOD = Kernel.from_ptx(ptx("")).ptx
WRONG: list[Any] = [
    "", "{", "null", "7", "[]", '"text"', "{}", "[" * 100_000, "\xff\x00",
    {"ptx": 7, "entry": "k"}, {"ptx": None, "entry": None}, {"ptx": ["x"], "entry": "k"},
    {"ptx": GOOD, "entry": 3}, {"ptx": GOOD, "entry": "other"}, {"ptx": GOOD, "entry": ["k"]},
    {"ptx": {"a": 1}, "entry": "k"}, {"ptx": "", "entry": "k"}, {"ptx": GOOD},
]  # fmt: skip


@pytest.mark.parametrize("content", WRONG, ids=lambda c: str(c)[:24])
def test_a_wrong_cache_file_is_a_miss(cache: Path, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    cache.write_bytes(text.encode("latin-1"))
    kernel = Kernel.from_cuda(SOURCE, "k")
    out = np.zeros(4, np.int32)
    simulator.launch(kernel, 1, 4, [out])
    assert out.tolist() == [7] * 4
    assert json.loads(cache.read_text())["ptx"] == kernel.ptx


def test_a_huge_cache_file(cache: Path) -> None:
    with cache.open("r+b") as file:
        file.truncate(1 << 40)
    assert ".entry" in Kernel.from_cuda(SOURCE, "k").ptx
    assert cache.stat().st_size < 1 << 20


def test_a_cache_file_that_is_a_folder(cache: Path) -> None:
    cache.unlink()
    cache.mkdir()
    assert ".entry" in Kernel.from_cuda(SOURCE, "k").ptx
    assert list(cache.parent.iterdir()) == [cache]


def test_the_cache_runs_no_code(cache: Path) -> None:
    stored = json.loads(cache.read_text())
    evil = stored["ptx"].replace("ret;", f"call {EVIL}, (); ret;") + f".func {EVIL} () {{ ret; }}"
    cache.write_text(json.dumps(stored | {"ptx": evil}))
    kernel = Kernel.from_cuda(SOURCE, "k")
    assert kernel.ptx == evil
    with pytest.raises(SimulatorError):
        simulator.launch(kernel, 1, 4, [np.zeros(4, np.int32)])


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESCOPE_CACHE", str(tmp_path / "cache"))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    steps: list[tuple[Any, str, Callable[..., Any]]] = [
        (json, "dump", full), (os, "replace", full), (nvrtc.tempfile, "mkstemp", full),
    ]  # fmt: skip
    for owner, name, failing in steps:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, failing)
            assert ".entry" in Kernel.from_cuda(SOURCE, "k").ptx
        assert list((tmp_path / "cache").iterdir()) == []


# -- array files and pages ------------------------------------------------------------------------


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    np.save(file, np.array([Evil()], object), allow_pickle=True)
    path = tmp_path / "k.ptx"
    path.write_text(ptx(""))
    told = command("run", str(path), "k", "--grid", "1", "--block", "1", f"i32[1]=@{file}")
    assert told.exit_code == 2
    assert not (tmp_path / "made").exists()


def test_a_page_of_hostile_ptx() -> None:
    """A file's name and a comment, in everything that a page says of them."""
    tag = "</script><script>alert(2)</script>"
    body = ".reg .b64 %a; ld.param.u64 %a, [p];\n st.global.u32 [%a], 1;"
    text = ptx(body, after=f'.file 1 "{tag}"').replace(
        "st.global", f".loc 1 3 0\n /* {tag} */ st.global"
    )
    run = simulator.launch(Kernel.from_ptx(text), 1, 1, [np.zeros(1, np.int32)], trace=True)
    page = show(run).content
    assert "alert(2)" in page
    assert tag not in page
    assert page.count("<script") == 3


def test_a_page_shows_text_as_text(tmp_path: Path) -> None:
    tag = "</script><script>alert(1)</script><!--"
    source = tmp_path / "k.cu"
    source.write_text(f"__global__ void k(int* a) {{ a[threadIdx.x] = 1; /* {tag} */ }}\n")
    traced = simulator.launch(
        Kernel.from_cuda(source, "k"), 1, 32, [np.zeros(32, np.int32)], trace=True
    )
    page = show(traced).content
    assert "alert(1)" in page
    assert tag not in page
    assert page.count("<script") == page.count("</script") == 3
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "unsafe" not in policy[1]
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", policy[1])


def test_caches_and_dumps_are_plain_files(cache: Path) -> None:
    assert stat.S_ISREG(cache.stat().st_mode)
    assert cache.stat().st_mode & 0o077 == 0

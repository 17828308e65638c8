"""A compiler that crashes, hangs or is interrupted: one line of error; the next text compiles."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels import CompileError, Kernel
from kernels.compiler import nvrtc
from kernels.compiler import process as compiler_process
from kernels.compiler.nvrtc import nvrtc_version
from tests.support.command_line import error_of, tilescope

GOOD = "__global__ void k(int* a) { a[threadIdx.x] = 7; }\n"
ENDLESS = """template <class A, class B> struct P {};
template <int N, class T> struct F {
  static const int v = F<N - 1, P<T, int>>::v + F<N - 1, P<T, char>>::v;
};
template <class T> struct F<0, T> { static const int v = 1; };
__global__ void k(int* a) { *a = F<40, int>::v; }
"""
"""It has 2^40 types."""
CRASHES = """typedef unsigned long long u64;
static __device__ long long f(int i, long long l, int a) {
  int j = (int)((u64)l * 6 + (u64)(i * 4));
  long long m = (long long)((u64)l * 18 + (u64)(i * 16));
  u64 w = (u64)l * 30 + (u64)(i * 28);
  float x = __int_as_float((int)((u64)l * 72 + (u64)(i * 70)));
#pragma unroll 1
  for (int n = 0; n < 1; n++) x = -2.5f;
  return m + j + (long long)w + __float_as_int(x) + a;
}
__global__ void k(u64* out, const u64* in, int a, short d) {
  int i = (int)in[1], j = (int)in[2];
  unsigned u = __reduce_xor_sync(~0u, j >= i ? 0u : (unsigned)in[3]);
  switch ((unsigned)min(-129, i) % 5) {
    case 0:
      if ((long long)in[4] <= (long long)in[5]) u = (unsigned)f(max(j, 0) * i * i, d, a);
  }
  out[5] = u;
}
"""
"""NVRTC 13.0.88 ends on it with a segmentation fault, but for -G."""


def running() -> subprocess.Popen[str]:
    process = compiler_process._process(os.getpid())._running
    assert process
    return process


def after(seconds: float, act: Callable[[], object]) -> None:
    threading.Timer(seconds, act).start()


def test_a_compiler_that_is_killed(tmp_path: Path) -> None:
    Kernel.from_cuda(GOOD, "k", cache=False)
    first = running()
    # What fails in a process that had other texts before is tried again in a new one.
    after(0.3, first.kill)

    def kill_the_second() -> None:
        while compiler_process._process(os.getpid())._running in (first, None):
            time.sleep(0.01)
        running().kill()

    after(0.4, kill_the_second)
    with pytest.raises(CompileError, match=r"NVRTC [\d.]+ itself crashed \(\w+\)") as caught:
        Kernel.from_cuda(ENDLESS, "k", cache=False)
    assert "\n" not in str(caught.value)
    assert Kernel.from_cuda(GOOD, "k", cache=False).ptx


def test_a_compilation_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_process, "LIMIT", 0.5)
    with pytest.raises(CompileError, match=r"itself did not end within 0.5 s"):
        Kernel.from_cuda(ENDLESS, "k", cache=False)
    monkeypatch.undo()
    assert Kernel.from_cuda(GOOD, "k", cache=False).ptx


@pytest.mark.skipif(os.name != "posix", reason="pipes are waited for without interruption there")
def test_a_user_who_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel.from_cuda(GOOD, "k", cache=False)
    compiling = running()
    monkeypatch.setattr(compiler_process, "LIMIT", 30)
    after(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        Kernel.from_cuda(ENDLESS, "k", cache=False)
    assert compiling.poll() is not None  # it goes on for nobody
    assert Kernel.from_cuda(GOOD, "k", cache=False).ptx


@pytest.mark.skipif(os.name != "posix", reason="looks for it as POSIX does")
def test_it_ends_with_its_caller(tmp_path: Path) -> None:
    """Even in the middle of a compilation, when the caller has no time for goodbyes."""
    (tmp_path / "k.cu").write_text(ENDLESS)
    code = f"""\
import os, threading; from kernels import Kernel; from kernels.compiler import process
Kernel.from_cuda({GOOD!r}, 'k', cache=False)
print(process._process(os.getpid())._running.pid, flush=True)
threading.Timer(0.3, os._exit, [0]).start()
Kernel.from_cuda({str(tmp_path / "k.cu")!r}, 'k', cache=False)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)

    def alive() -> bool:
        try:
            os.kill(int(done.stdout), 0)
        except ProcessLookupError:
            return False
        return True

    end = time.monotonic() + 20
    while alive() and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
def test_processes_that_fork() -> None:
    """Each has a compiler of its own, and ends none of another's."""
    code = f"""\
import os, sys; from kernels import Kernel
def made(): return Kernel.from_cuda({GOOD!r}, 'k', cache=False).ptx
first = made(); pid = os.fork()
assert made() == first
if pid: assert os.waitpid(pid, 0)[1] == 0; assert made() == first
"""
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


LACKING = '#include "mine.h"\n#include <library/theirs.h>\n'
MAIN = "int main() { k<<<1, 1>>>(nullptr); }\n"


def assert_lacking_is_told_first(error: str) -> None:
    *told, crash = error.splitlines()
    assert told == [
        "(not found: mine.h, library/theirs.h; -I FOLDER says where to look)",
    ]
    assert "itself crashed (" in crash


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("source", [LACKING + GOOD, LACKING + GOOD + MAIN, GOOD + LACKING + MAIN])
def test_headers_that_were_not_found_are_told_before_a_crash(
    source: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most likely it is for want of them, and no fault of what is there."""

    def crashing(work: str, **task: Any) -> Any:
        if work == "nvrtc" and task["headers"]:
            raise compiler_process.CompilerCrash("crashed (SIGSEGV)")
        return compiler_process.ask(work, **task)

    monkeypatch.setattr(nvrtc, "ask", crashing)
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(source, "k", build=build, cache=False)
    assert_lacking_is_told_first(str(caught.value))


@pytest.mark.slow_cases("int main...")
@pytest.mark.skipif(nvrtc_version() != "13.0.88", reason="another release's faults are others")
@pytest.mark.parametrize("end", ["", "int main() { k<<<1, 1>>>(nullptr, nullptr, 1, 1); }\n"])
def test_a_real_crash_of_a_text_that_lacks_headers(end: str) -> None:
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(LACKING + CRASHES + end, "k", cache=False)
    assert_lacking_is_told_first(str(caught.value))


@pytest.mark.skipif(nvrtc_version() != "13.0.88", reason="another release's faults are others")
def test_the_other_build_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crashes.cu").write_text(CRASHES)
    words = ["crashes.cu", "k", "--grid", 1, "--block", 32, "u64[8]", "u64[8]", 1, 1]
    done = tilescope("check", *words)
    assert "NVRTC 13.0.88 itself crashed (SIGSEGV)" in " ".join(done.output.split())
    assert done.exit_code == 0
    assert "crashed" in error_of("run", *words)

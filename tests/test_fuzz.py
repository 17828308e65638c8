"""Damaged PTX: a clear error of one line, or a run to the end; no traceback and no hang."""

from __future__ import annotations

import functools
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simulator
from kernels import Kernel, KernelError, library
from simulator import SimulatorError
from tests.fuzz.damage import CHANGES, Change
from tilescope.cli import main

NAMES = (
    "matmul_naive_square", "matmul_tiled", "matmul_vectorised", "matmul_register_tiled",
    "reduction_shuffle", "histogram_shared", "softmax_rows",
)  # fmt: skip
STEPS = 2000
"""Basic blocks a damaged kernel may run; a sound one of this size needs a few hundred."""
SECONDS = 20


@functools.cache
def sound(name: str, build: str) -> tuple[str, str]:
    """PTX text and entry of a library kernel."""
    kernel = library.get(name).kernel(build=build)
    return kernel.ptx, kernel.entry


def damaged(name: str, build: str, kinds: list[Change], seed: int) -> str:
    text, rng = sound(name, build)[0], random.Random(seed)
    for kind in kinds:
        text = kind(rng, text) if text else text
    return text


@contextmanager
def no_hang(seconds: int = SECONDS) -> Iterator[None]:
    """Fail after some seconds; where the platform has no alarm, trust the step limit."""

    def too_late(*_: Any) -> None:
        raise AssertionError(f"still running after {seconds} seconds")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(name: str, build: str, text: str) -> str:
    """``ran``, or the error's text; any other exception passes through."""
    launch = library.get(name).launch(_size(name))
    try:
        kernel = Kernel.from_ptx(text + "\n", _entry(name, build))
        run = simulator.launch(
            kernel, launch.grid, launch.block, launch.args, launch.shared_bytes, step_limit=STEPS
        )
    except (KernelError, SimulatorError, ValueError, TypeError) as error:
        if not _ours(error):
            raise
        return str(error)
    for hazard in run.hazards:
        assert str(hazard)
    run.to_dict()
    return "ran"


def _ours(error: BaseException) -> bool:
    """Whether an exception was raised on purpose: its innermost frame holds a ``raise``."""
    import linecache

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or isinstance(error, (KernelError, SimulatorError)):
        return True
    code = trace.tb_frame.f_code
    return "raise" in linecache.getline(code.co_filename, trace.tb_lineno) or any(
        "raise" in linecache.getline(code.co_filename, n)
        for n in range(trace.tb_lineno - 3, trace.tb_lineno)
    )


def _entry(name: str, build: str) -> str:
    return sound(name, build)[1]


def _size(name: str) -> tuple[int, ...]:
    entry = library.get(name)
    return (16,) * len(entry.axes)


cases = given(
    st.sampled_from(NAMES),
    st.sampled_from(["device", "source"]),
    st.lists(st.sampled_from([change for _, change, _ in CHANGES]), min_size=1, max_size=2),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@cases
def test_damaged_ptx_is_told_in_one_line_or_runs(
    name: str, build: str, kinds: list[Change], seed: int
) -> None:
    with no_hang():
        said = outcome(name, build, damaged(name, build, kinds, seed))
    assert said.strip()
    assert "\n" not in said


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@cases
def test_the_command_line_never_shows_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, name: str, build: str, kinds: list[Change], seed: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.ptx"
    file.write_text(damaged(name, build, kinds, seed), encoding="utf-8")
    launch = library.get(name).launch(_size(name))
    shape = [option for key, value in (("--grid", launch.grid), ("--block", launch.block))
             for option in (key, ",".join(str(n) for n in value))]  # fmt: skip
    words = [_word(value) for value in launch.args]
    command = ["check", str(file), _entry(name, build), *shape, *words, "--no-cure",
               "--step-limit", str(STEPS), "--shared", str(launch.shared_bytes)]  # fmt: skip
    with no_hang():
        result = CliRunner().invoke(main, command)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code in (0, 1, 2)
    if result.exit_code == 2:
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1


def _word(value: Any) -> str:
    """An argument as the command line writes it."""
    if isinstance(value, np.ndarray):
        kind = {"f": "f", "i": "i", "u": "u"}[value.dtype.kind] + str(8 * value.itemsize)
        return f"{kind}[{','.join(str(n) for n in value.shape)}]"
    return str(value)


SMALL = """\
.version 9.0
.target sm_90
.address_size 64
.visible .entry small(.param .u64 p)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;
    .shared .align 4 .b8 s[128];
    .local .align 4 .b8 l[8];
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u64 %rd3, s;
    cvta.shared.u64 %rd4, %rd3;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd6, %rd3, %rd5;
    st.shared.u32 [%rd6], %r1;
    ld.shared.u32 %r2, [%rd6+0];
    setp.ge.s32 %p1, %r1, 8;
    shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;
    add.s64 %rd7, %rd2, %rd5;
    st.global.u32 [%rd7], %r3;
    ret;
}
"""
ONCE = (
    ("ld.param.u64 %rd1, [p]", "ld.param %rd1, [p]"),
    ("ld.param.u64 %rd1, [p]", "ld.param.u64 %rd1"),
    ("cvta.to.global.u64 %rd2, %rd1", "cvta.to.global.u64 %rd2"),
    ("cvta.shared.u64 %rd4, %rd3", "cvta.shared %rd4, %rd3"),
    ("cvta.shared.u64 %rd4", "cvta.shared.u64.u8 %rd4"),
    ("ld.shared.u32 %r2, [%rd6+0]", "ld.shared.u32 %r2"),
    ("ld.shared.u32 %r2, [%rd6+0]", "ld.shared %r2, [%rd6+0]"),
    ("ld.shared.u32 %r2, [%rd6+0]", "ld.shared.u32 %r2, [%rd6+99999999999999999999]"),
    (".align 4 .b8 s", ".align 99999999999999999999 .b8 s"),
    (".align 4 .b8 s", ".align 3 .b8 s"),
    (".align 4 .b8 s", ".align 0 .b8 s"),
    ("s[128]", "s[99999999999999999999]"),
    ("l[8]", "l[99999999999]"),
    ("shfl.sync.idx.b32 %r3, %r2, 0, 31, -1", "shfl.sync.idx.b32 %r3, %r2, 0"),
    ("setp.ge.s32 %p1", "setp.ge.s32.b128 %p1"),
    ("mov.u32 %r1, %tid.x", "mov.u32 %r1, 99999999999999999999"),
    ("%r<6>", "%r<99999999999999999999>"),
)
"""Single mistakes that have given a traceback, and others of their kind."""


def test_the_small_kernel_is_sound() -> None:
    x = np.zeros(32, np.int32)
    run = simulator.launch(Kernel.from_ptx(SMALL), 1, 32, [x])
    assert run.hazards == []


@pytest.mark.parametrize(("was", "now"), ONCE, ids=[now for _, now in ONCE])
def test_a_single_mistake(was: str, now: str) -> None:
    assert was in SMALL
    said = "ran"
    with no_hang():
        try:
            kernel = Kernel.from_ptx(SMALL.replace(was, now))
            simulator.launch(kernel, 1, 32, [np.zeros(32, np.int32)], step_limit=STEPS)
        except (KernelError, SimulatorError) as error:
            said = str(error)
    assert said.strip()
    assert "\n" not in said


def test_sound_kernels_run() -> None:
    for name in NAMES:
        for build in ("device", "source"):
            assert outcome(name, build, sound(name, build)[0]) == "ran"


def test_a_binary_file(tmp_path: Path) -> None:
    file = tmp_path / "binary.ptx"
    file.write_bytes(bytes(range(256)) * 40)
    result = CliRunner().invoke(main, ["check", str(file), "--grid", "1", "--block", "1"])
    assert result.exit_code == 2
    assert "no .entry in this text; is it PTX?" in result.stderr

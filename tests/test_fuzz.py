"""Damaged PTX: a clear error of one line, or a run to the end; no traceback and no hang."""

from __future__ import annotations

import functools
import random
import re
import signal
from collections.abc import Callable, Iterator
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
from tilescope.cli import main

NAMES = (
    "matmul_naive_square", "matmul_tiled", "matmul_vectorised", "matmul_register_tiled",
    "reduction_shuffle", "histogram_shared", "softmax_rows",
)  # fmt: skip
STEPS = 2000
"""Basic blocks a damaged kernel may run; a sound one of this size needs a few hundred."""
SECONDS = 20

Damage = Callable[[str, random.Random], str]


@functools.cache
def sound(name: str, build: str) -> tuple[str, str]:
    """PTX text and entry of a library kernel."""
    kernel = library.get(name).kernel(build=build)
    return kernel.ptx, kernel.entry


# -- damage -----------------------------------------------------------------------------


def truncated(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


def shuffled(text: str, rng: random.Random) -> str:
    """Some lines in another order."""
    lines = text.split("\n")
    first = rng.randrange(len(lines))
    last = min(len(lines), first + rng.choice([2, 3, 10, len(lines)]))
    piece = lines[first:last]
    rng.shuffle(piece)
    return "\n".join(lines[:first] + piece + lines[last:])


def without_tokens(text: str, rng: random.Random) -> str:
    tokens = re.split(r"(\s+|[,;{}()\[\].+:])", text)
    for _ in range(rng.choice([1, 1, 1, 5, 50])):
        tokens[rng.randrange(len(tokens))] = ""
    return "".join(tokens)


def without_lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 3, 20])):
        lines[rng.randrange(len(lines))] = ""
    return "\n".join(lines)


def swapped_tokens(text: str, rng: random.Random) -> str:
    """Two words change places: registers of the wrong type, labels as operands ..."""
    tokens = re.split(r"([\w%$.]+)", text + " end ")
    for _ in range(rng.choice([1, 1, 4])):
        i, j = (2 * rng.randrange(len(tokens) // 2) + 1 for _ in range(2))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


def other_words(text: str, rng: random.Random) -> str:
    """A word is replaced by a copy of another: an opcode, a type, a register."""
    tokens = re.split(r"([\w%$]+)", text + " end ")
    for _ in range(rng.choice([1, 1, 4])):
        i, j = (2 * rng.randrange(len(tokens) // 2) + 1 for _ in range(2))
        tokens[i] = tokens[j]
    return "".join(tokens)


def random_bytes(text: str, rng: random.Random) -> str:
    raw = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 5, 100])):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return raw.decode("utf-8", errors="replace")


def other_numbers(text: str, rng: random.Random) -> str:
    """Numbers in the text become others: counts, offsets, immediates, alignments."""
    found = list(re.finditer(r"(?<![\w%$.])\d+\b", text))
    for match in sorted(rng.sample(found, min(len(found), rng.choice([1, 1, 5]))), reverse=True,
                        key=lambda m: m.start()):  # fmt: skip
        new = rng.choice(["0", "1", "-1", "3", "1000000", "4294967296", "99999999999999999999"])
        text = text[: match.start()] + new + text[match.end() :]
    return text


MODIFIERS = (
    "f64", "u8", "s64", "v4", "b128", "sat", "ftz", "f16", "pred", "rn", "wide", "global",
    "shared", "volatile", "acquire", "cta",
)  # fmt: skip


def _instructions(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if re.match(r"\s+[a-z]\S*\s.*;", line)]


def other_opcodes(text: str, rng: random.Random) -> str:
    """Instructions get the opcode of another line, with operands that do not suit it."""
    lines = text.split("\n")
    places = _instructions(lines)
    for _ in range(rng.choice([1, 1, 3]) if places else 0):
        i, j = rng.choice(places), rng.choice(places)
        lines[i] = f"\t{lines[j].split()[0]} {lines[i].split(None, 1)[1]}"
    return "\n".join(lines)


def other_modifiers(text: str, rng: random.Random) -> str:
    """Instructions lose a modifier or a type, or get one more."""
    lines = text.split("\n")
    places = _instructions(lines)
    for _ in range(rng.choice([1, 1, 3]) if places else 0):
        i = rng.choice(places)
        opcode, operands = lines[i].split(None, 1)
        parts = opcode.split(".")
        if rng.random() < 0.5 and len(parts) > 1:
            parts.pop(rng.randrange(1, len(parts)))
        else:
            parts.insert(rng.randrange(1, len(parts) + 1), rng.choice(MODIFIERS))
        lines[i] = f"\t{'.'.join(parts)} {operands}"
    return "\n".join(lines)


def other_declarations(text: str, rng: random.Random) -> str:
    """Lines that declare variables, registers and parameters are damaged."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if re.match(r"\s*\.[a-z]", line)]
    for _ in range(rng.choice([1, 1, 3]) if places else 0):
        i = rng.choice(places)
        kind = rng.choice([other_numbers, other_words, swapped_tokens, without_tokens])
        lines[i] = kind(lines[i] + " ", rng)
    return "\n".join(lines)


def noise(text: str, rng: random.Random) -> str:
    return rng.randbytes(rng.randrange(1, 400)).decode("latin-1")


DAMAGE: tuple[Damage, ...] = (
    truncated, shuffled, without_tokens, without_lines, swapped_tokens, other_words, random_bytes,
    other_numbers, other_opcodes, other_modifiers, other_declarations, noise,
)  # fmt: skip


def damaged(name: str, build: str, kinds: list[Damage], seed: int) -> str:
    text, rng = sound(name, build)[0], random.Random(seed)
    for kind in kinds:
        text = kind(text, rng) if text else text
    return text


# -- what has to come of it -------------------------------------------------------------


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
    st.lists(st.sampled_from(DAMAGE), min_size=1, max_size=2),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@cases
def test_damaged_ptx_is_told_in_one_line_or_runs(
    name: str, build: str, kinds: list[Damage], seed: int
) -> None:
    with no_hang():
        said = outcome(name, build, damaged(name, build, kinds, seed))
    assert said.strip()
    assert "\n" not in said


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@cases
def test_the_command_line_never_shows_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, name: str, build: str, kinds: list[Damage], seed: int
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

"""PTX with damage: whatever stands in a text, tilescope answers it in one line, and soon.

A text is drawn (kernels of the library in both builds, programs of the defects, a few made
to have one of everything), damaged at the level of bytes, tokens, numbers, operands,
modifiers, lines or directives, and launched. It may run, with any result, or end in an error
of the project. Anything else is a difference: another exception, a warning, a message
of several lines, a register of another dtype than its carrier's, more CPU time than ``LIMIT``.
"""

import contextlib
import functools
import json
import random
import re
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

import numpy as np
from click.testing import CliRunner

import simulator
from kernels import Kernel, KernelError, library
from kernels.source.signatures import kernel_names
from simulator import ArgumentWarning, SimulatorError
from tests.fuzz.damage import CHANGES, TOKEN
from tests.fuzz.report import Difference, Report
from tests.fuzz.report import seeds as seeds_of
from tests.fuzz.samples import SAMPLES
from tilescope.cli.main import main
from tilescope.view import show

MEMORY = 2 << 30
"""Bytes by which one text may make the process grow."""
LIMIT, FIXES = 20, 100
"""Seconds of CPU time that one text may take: most take milliseconds. ``check`` may try some forty
fixes of one that never ends (seed 2190018100: each 1.5 s, with all its races)."""
STEPS = 400
"""Basic blocks a batch may run."""
_PROGRAMS = Path(__file__).parent.parent / "defects"
_LONGEST = 9000
_SHRINKS = 400


class Slow(BaseException):
    """A text took more CPU time than ``LIMIT``."""


# -- what is damaged ------------------------------------------------------------------------------


@functools.cache
def origins() -> tuple[str, ...]:
    """Names of the programs that there are."""
    names = [f"sample:{i}" for i in range(len(SAMPLES))]
    names += [f"library:{name}:{build}" for name in library.names() for build in _BUILDS]
    names += [f"file:{path.relative_to(_PROGRAMS)}" for path in sorted(_PROGRAMS.rglob("*.ptx"))]
    for path in sorted(_PROGRAMS.rglob("*.cu")):
        found = [n for n in kernel_names(path.read_text()) if "<" not in n]
        for build in _BUILDS:
            names += [f"cuda:{path.relative_to(_PROGRAMS)}:{name}:{build}" for name in found]
    return tuple(names)


_BUILDS = ("device", "source")


@functools.cache
def program(origin: str) -> str:
    """A program's PTX without what no simulator reads; empty where there is none, or a long one."""
    kind, *rest = origin.split(":")
    try:
        if kind == "sample":
            return SAMPLES[int(rest[0])]
        if kind == "library":
            entry = library.get(rest[0])
            text = entry.kernel(entry.tiles[0] if entry.tiles else None, build=rest[1]).ptx
        elif kind == "file":
            text = (_PROGRAMS / rest[0]).read_text()
        else:
            text = Kernel.from_cuda(_PROGRAMS / rest[0], rest[1], build=rest[2]).ptx
    except KernelError:
        return ""
    text = re.split(r"^\s*\.section", text, maxsplit=1, flags=re.M)[0]
    text = re.sub(r"^\s*//.*\n|^\s*\n", "", text, flags=re.M)
    return text if len(text) <= _LONGEST else ""


def drawn(rng: random.Random, names: Sequence[str]) -> str:
    """One of the programs: a sample half of the time."""
    while True:
        wanted = "sample" if rng.random() < 0.4 else ""
        text = program(rng.choice([n for n in names if n.startswith(wanted)]))
        if text:
            return text


def mutant(rng: random.Random, names: Sequence[str], report: Report) -> str:
    """A program with one to four changes."""
    text = drawn(rng, names)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        (change,) = rng.choices(CHANGES, [weight for _, _, weight in CHANGES])
        report.reach("damage", change[0])
        text = change[1](rng, text) or "\n"
    return text


# -- what it may do -------------------------------------------------------------------------------


def _arguments(kernel: Kernel, rng: random.Random) -> list[Any]:
    made: list[Any] = []
    for param in kernel.params:
        if param.is_struct:
            made.append(bytes(param.nbytes))
        elif param.type in ("u64", "s64", "b64"):
            made.append(np.arange(96, dtype=np.int32) % rng.choice([3, 50]))
        else:
            made.append(rng.choice([0, 1, 8, 64]))
    return made


def launch(text: str, seed: int) -> str:
    """Launch a text; says how it ended: ``ran``, or the error's type.

    Raises:
        Exception: Whatever is no error of the project.
    """
    rng = random.Random(seed)
    try:
        try:
            kernel = Kernel.from_ptx(text + "\n")
        except KernelError as error:
            entries = re.findall(r"\.entry\s+([\w$%]+)", text)
            if not str(error).startswith("which entry?") or not entries:
                raise
            kernel = Kernel.from_ptx(text + "\n", rng.choice(entries))
        run = simulator.launch(
            kernel, rng.choice([1, 2, (2, 2)]), rng.choice([1, 32, 40, (8, 8)]),
            _arguments(kernel, rng), shared_bytes=rng.choice([0, 0, 512]),
            schedule=rng.choice(["lockstep", "lockstep", "warps", "reverse", rng.randrange(99)]),
            checks=rng.choice(["all", "all", "none"]), step_limit=STEPS,
            trace=rng.random() < 0.1,
        )  # fmt: skip
    except (SimulatorError, KernelError) as error:
        message = str(error)
        if not message or not message.isprintable():
            raise AssertionError(f"no good message: {message[:300]!r}") from error
        if rng.random() < 0.2:
            _told(text, [], rng)
        return type(error).__name__
    json.dumps(run.to_dict())
    told = "\n".join(map(str, run.hazards))
    if not told.replace("\n", "").replace("\t", "").isprintable():
        raise AssertionError(f"no text to print: {told[:300]!r}")
    if run.trace is not None:
        show(run)
        words = [
            "i32[96]=arange" if p.type in ("u64", "s64", "b64") else "3" for p in kernel.params
        ]
        _told(text, [kernel.entry, *words], rng)
    return "ran with hazards" if run.hazards else "ran"


def _told(text: str, words: Sequence[str], rng: random.Random) -> None:
    """The same through the command line, which has words of its own for all that is found."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(text + "\n", encoding="utf-8", errors="replace")
        files = ["--json", f"{folder}/run.json"]
        options = rng.choice([
            ["run", "--by-line", *files], ["check", *files, "--sarif", f"{folder}/run.sarif"],
            ["barriers"],
        ])  # fmt: skip
        with bounded(FIXES if options[0] == "check" else LIMIT):
            found = CliRunner().invoke(main, [
                options[0], str(path), "--grid", "2", "--block", "40", "--step-limit", str(STEPS),
                *options[1:], *words,
            ])  # fmt: skip
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    if found.exit_code == 2 and (found.stdout or found.stderr.count("\n") != 1):
        raise AssertionError(f"no good message: {found.output[:300]!r}")


@contextlib.contextmanager
def bounded(limit: float) -> Iterator[None]:
    """Ends what takes more than so many seconds of this process's CPU time."""

    def ring(*_: Any) -> None:
        raise Slow

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, ring)
    left, _ = signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)
        signal.signal(signal.SIGPROF, before)


def _peak() -> int:
    """Bytes of memory that the process had at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if resource else 0


def judged(text: str, seed: int) -> tuple[str, str]:
    """How a launch ended, and what was wrong with that: empty if nothing was."""
    try:
        with bounded(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ArgumentWarning)  # all arrays are int32 here
            before = _peak()
            ended = launch(text, seed)
            grown = _peak() - before
            return ended, f"{grown >> 20} MiB of memory" if grown > MEMORY else ""
    except (Exception, SystemExit, Slow) as error:  # an exit: code of the text ran
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if "/simulator/" in f.filename or "/kernels/" in f.filename]
        at = own[-1] if own else frames[-1]
        place = f"{Path(at.filename).name}:{at.name}"
        if isinstance(error, Slow):  # it may be caught anywhere
            return "", f"more than {LIMIT} s of CPU time"
        return "", f"{type(error).__name__} in {place}: {str(error)[:200]}"


def shrunk(text: str, seed: int, what: str) -> str:
    """A shorter text with the same thing wrong: lines are left out, then tokens."""
    kind = what.split(":")[0]
    left = _SHRINKS if "CPU" not in what else 12

    def fails(candidate: str) -> bool:
        nonlocal left
        left -= 1
        return left > 0 and judged(candidate, seed)[1].split(":")[0] == kind

    for pattern in (r"[^\n]*\n?", TOKEN.pattern):
        parts = [p for p in re.findall(pattern, text, re.S) if p]
        size = max(1, len(parts) // 2)
        while size:
            at = 0
            while at < len(parts) and left > 0:
                candidate = parts[:at] + parts[at + size :]
                if fails("".join(candidate)):
                    parts = candidate
                else:
                    at += size
            size //= 2
        text = "".join(parts)
    return text


def run(seconds: float, seed: int, count: int | None = None, names: Sequence[str] = ()) -> Report:
    """Damage and launch programs.

    Args:
        seconds: How long.
        seed: Of the first program.
        count: How many at most.
        names: Of ``origins``, those to take; all, if left out.
    """
    report = Report()
    report.known = {"damage": {name for name, _, _ in CHANGES}}
    known: set[str] = set()
    for number in seeds_of(seconds, seed, count):
        rng = random.Random(number)
        text = mutant(rng, names or origins(), report)
        report.programs += 1
        report.launches += 1
        ended, wrong = judged(text, number)
        report.reach("ends", ended or "wrong")
        kind = wrong.split(":")[0]
        if wrong and kind not in known:
            known.add(kind)
            report.differences.append(Difference(number, wrong, shrunk(text, number, wrong)))
    return report

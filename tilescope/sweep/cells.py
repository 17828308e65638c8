"""Cells of a sweep: launches, and their results as rows."""

import functools
import hashlib
import itertools
import pickle
import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import device
import kernels
import simulator

from ..check.outcome import execute
from ..cli.kernel_names import is_file
from ..cli.menu.choices import STEP_LIMIT
from ..cli.request import Request
from ..cli.target import Target, resolve
from ..release import version

_BLANK = re.compile(r"\{(size|tile)(?:/(size|tile|\d+))?\}")
_TURN = threading.Lock()
Row = dict[str, Any]
"""What a cell is, and what came of it; JSON-ready."""


@dataclass(frozen=True)
class Cell:
    """One launch of a sweep, with defaults for unspecified fields.

    Attributes:
        kernel: A library kernel, or a file.
        words: For a file, entry and arguments.
        size, tile: Size and tile of a library kernel; for a file they replace ``{size}``,
            ``{tile}`` and ``{size/tile}`` (rounded up) in words, grid, block and macros.
        gpu: GPU whose caches are simulated, or for which the time is predicted.
        schedule, checks, step_limit: As for ``simulator.launch``.
        seed: Seed of random inputs.
        predict: Whether to predict the time instead of a complete run.
    """

    kernel: str
    words: tuple[str, ...] = ()
    size: str | None = None
    tile: int | None = None
    gpu: str | None = None
    schedule: str | int = "lockstep"
    seed: int = 0
    checks: str | tuple[str, ...] = "all"
    step_limit: int = STEP_LIMIT
    predict: bool = False
    grid: str | None = None
    block: str | None = None
    shared: int = 0
    defines: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    arch: str | None = None
    build: str | None = None

    def target(self) -> Target:
        """Return the launch; raises what ``target.resolve`` does."""
        filled = self
        if is_file(self.kernel):
            fill = functools.partial(_filled, size=self.size, tile=self.tile)
            filled = Cell(
                self.kernel, tuple(map(fill, self.words)), grid=self.grid and fill(self.grid),
                block=self.block and fill(self.block), defines=tuple(map(fill, self.defines)),
            )  # fmt: skip
        request = Request(
            self.kernel, filled.words, filled.size, filled.tile, filled.grid or self.grid,
            filled.block or self.block, self.shared, self.seed, self.arch, self.build,
            (*(f"-D{define}" for define in filled.defines), *(f"-I{i}" for i in self.includes)),
        )  # fmt: skip
        return resolve(request, not self.predict)


def _filled(text: str, size: str | None, tile: int | None) -> str:
    """Replace the placeholders of a text.

    Raises:
        ValueError: A value is missing or no number.
    """
    known = {"size": size, "tile": tile}

    def number(word: str) -> int:
        value = known.get(word, word)
        if value is None or not str(value).isdecimal() or not int(value):
            raise ValueError(f"{text}: there is no {word} (a number) to fill it with")
        return int(value)

    def fill(found: re.Match[str]) -> str:
        return str(-(-number(found[1]) // number(found[2] or "1")))

    return _BLANK.sub(fill, text)


def grid(
    kernels: Sequence[str],
    sizes: Sequence[str | None] = (None,),
    tiles: Sequence[int | None] = (None,),
    gpus: Sequence[str | None] = (None,),
    schedules: Sequence[str | int] = ("lockstep",),
    seeds: Sequence[int] = (0,),
    **rest: Any,
) -> Iterator[Cell]:
    """Yield every kernel with every size, tile, GPU, schedule and seed; ``rest``: common fields.

    ``NAME:TILE`` gives a library kernel a tile of its own. Predictions have no schedule.
    """
    if rest.get("predict"):
        gpus, schedules = [gpu or "h200" for gpu in gpus], schedules[:1]
    for name in kernels:
        plain, _, own = name.partition(":")
        if not own.isdecimal() or is_file(name):
            plain, own = name, ""
        mine = [int(own)] if own else tiles
        for size, tile, gpu, schedule, seed in itertools.product(
            sizes, mine, gpus, schedules, seeds
        ):
            yield Cell(
                plain, size=size, tile=tile, gpu=gpu, schedule=schedule, seed=seed, **rest
            )  # fmt: skip


@functools.cache
def code() -> str:
    """Return the version that produces rows: its number, and a digest of its files."""
    digest = hashlib.sha256()
    rooms = [Path(str(room.__file__)).parent for room in (kernels, simulator, device)]
    for folder in (*rooms, Path(__file__).parents[1]):
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.cu"), *folder.rglob("*.h")]):
            digest.update(path.read_bytes())
    return f"{version()} {digest.hexdigest()[:16]}, NumPy {np.__version__}"


def key(cell: Cell, target: Target) -> str:
    """Return a digest of everything a row depends on: kernel, launch, arguments, version."""
    kernel = target.kernel
    how = (cell.gpu, cell.schedule, cell.seed, cell.checks, cell.step_limit, cell.predict)
    shape = target.grid, target.block, target.shared_bytes, sorted(target.how.items())
    given = target.args, target.symbols
    # Pickled arrays compare by all of their bytes, whatever contains them.
    content = pickle.dumps((code(), kernel.sha256, kernel.entry, how, shape, given))
    return hashlib.sha256(content).hexdigest()


def run_cell(cell: Cell, known: Collection[str] = ()) -> Row:
    """Run or predict a cell in this process, on one core; a failure also becomes a row.

    ``known``: keys of available rows; for such a cell the row has only its key.
    """
    began = time.perf_counter()
    with _TURN:  # where an executor has threads
        row = said(cell)
        try:
            target = cell.target()
            tile = target.tile or cell.tile
            row |= {"key": key(cell, target), "size": _size(cell, target), "tile": tile}
            row["notes"] = list(target.kernel.notes)
            if row["key"] in known:
                return row | {"status": "known"}
            row |= _predicted(cell, target) if cell.predict else _run(cell, target)
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            row |= {"status": "failed", "error": lines[0]}
    return row | {"seconds": round(time.perf_counter() - began, 4)}


def said(cell: Cell) -> Row:
    """Return the identifying columns of a cell."""
    listed = {name: list(getattr(cell, name)) for name in ("words", "defines", "includes")}
    row = asdict(cell) | listed
    checks = cell.checks if isinstance(cell.checks, str) else list(cell.checks)
    return row | {"checks": checks, "status": "ok", "error": "", "notes": []}


def _size(cell: Cell, target: Target) -> str | None:
    if not target.size:
        return cell.size
    numbers = [str(n) for n in target.size]
    return numbers[0] if len({*numbers}) == 1 else "x".join(numbers)


def _run(cell: Cell, target: Target) -> Mapping[str, Any]:
    """Return the figures of a run."""
    if cell.gpu:
        target.how["gpu"] = cell.gpu
    outcome = execute(target, cell.schedule, cell.checks, True, cell.step_limit, workers=1)
    counters, hazards = outcome.run.counters, outcome.run.hazards
    right = None if not outcome.agreements else all(a.within for a in outcome.agreements)
    found: Row = {
        "errors": sum(h.severity == "error" for h in hazards),
        "warnings": sum(h.severity == "warning" for h in hazards),
        "hazards": sorted({h.kind for h in hazards}),
    }
    if not outcome.run.checked:
        found = dict.fromkeys(found)
    found |= {
        "checked": list(outcome.run.checked),
        "right": right,
        "flops": counters.flops,
        "thread_instructions": counters.thread_instructions,
        "global_sectors": sum(
            t.sectors for t in (counters.global_load, counters.global_store, counters.global_atomic)
        ),
        "bank_conflicts": sum(
            t.bank_conflicts
            for t in (counters.shared_load, counters.shared_store, counters.shared_atomic)
        ),
        "simulation_seconds": round(outcome.run.seconds, 4),
    }
    if counters.dram:
        found["dram_bytes"] = counters.dram.read_bytes + counters.dram.write_bytes
    return found


def _predicted(cell: Cell, target: Target) -> Mapping[str, Any]:
    """Return the figures of a prediction."""
    found = simulator.predict(
        target.kernel, target.grid, target.block, target.args, cell.gpu or "h200",
        target.shared_bytes, symbols=target.symbols, **target.how,
    )  # fmt: skip
    return {
        "time_ms": found.time_ms, "low_ms": found.low_ms, "high_ms": found.high_ms,
        "limiter": found.limiter, "dram_bytes": found.dram_read_bytes + found.dram_write_bytes,
    }  # fmt: skip

"""Execution of cells on an executor, with rows stored by key."""

import contextlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from simulator.workers.pool import cores, no_main

from .cells import Cell, Row, run_cell, said


class Rows:
    """Folder of finished rows, one file for each key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def known(self) -> frozenset[str]:
        """Return the keys of readable rows."""
        return frozenset(path.stem for path in self.folder.glob("*.json") if self.get(path.stem))

    def get(self, key: str) -> Row | None:
        """Return a row; ``None`` if it is missing, unreadable, or another's."""
        try:
            row = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return row if isinstance(row, dict) and row.get("key") == key else None

    def put(self, row: Row) -> None:
        """Store a successful row; failed cells may succeed later."""
        if row["status"] != "ok":
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{row['key']}.json"
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(row), encoding="utf-8")
        draft.replace(path)


def sweep(
    cells: Sequence[Cell],
    executor: Executor | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    on_row: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Run cells on an executor; return their rows in the cells' order.

    Args:
        cells: Cells to run.
        executor: A ``concurrent.futures`` executor, such as
            ``distributed.Client().get_executor()``; default: one process for each core.
        folder: Folder for finished rows.
        resume: Whether stored rows replace cells with the same kernel, launch, arguments, seed and
            version.
        on_row: Called with each row when it is finished.
    """
    rows = Rows(Path(folder)) if folder else None
    known = rows.known() if rows and resume else frozenset()
    found: dict[int, Row] = {}
    for number, row in _all(cells, executor, known):
        if rows and row["status"] == "known":
            stored = rows.get(row["key"]) or {"status": "failed", "error": "its kept row is gone"}
            same = {name: row[name] for name in said(cells[number]) if name not in stored}
            found[number] = stored | same | {"known": True}
        else:
            found[number] = row
            if rows:
                rows.put(row)
        on_row(found[number])
    return [found[number] for number in range(len(cells))]


def _all(
    cells: Sequence[Cell], executor: Executor | None, known: frozenset[str]
) -> Iterator[tuple[int, Row]]:
    """Yield rows as they finish, with the numbers of their cells."""
    if executor is not None:
        yield from _on(executor, range(len(cells)), cells, known)
        return
    remaining = list(range(len(cells)))
    with _processes(min(cores(), len(cells))) as pool:
        for number, row in _on(pool, remaining, cells, known):
            if row["status"] != "broken":
                remaining.remove(number)
                yield number, row
    for number in remaining:  # one that ends its process takes others with it: each by itself
        with _processes(1) as pool:
            yield from (
                (n, row | ({"status": "failed"} if row["status"] == "broken" else {}))
                for n, row in _on(pool, [number], cells, known)
            )


@contextlib.contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Provide a process pool that is killed on errors."""
    pool = ProcessPoolExecutor(max(count, 1), multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BaseException:
        processes = list((pool._processes or {}).values())  # nothing public tells them
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        raise
    pool.shutdown()


def _on(
    executor: Executor, numbers: Sequence[int], cells: Sequence[Cell], known: frozenset[str]
) -> Iterator[tuple[int, Row]]:
    futures: dict[Future[Row], int] = {}
    try:
        for number in numbers:
            with no_main():
                futures[executor.submit(run_cell, cells[number], known)] = number
        for future in as_completed(futures):
            yield futures[future], _row(future, cells[futures[future]])
    except BrokenProcessPool:  # while cells are handed in
        for number in set(numbers) - set(futures.values()):
            yield number, said(cells[number]) | {"status": "broken", "error": "not run"}
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _row(future: "Future[Row]", cell: Cell) -> Row:
    """Return the row of a finished cell, or of one whose process died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return said(cell) | {"status": "broken", "error": "its process died"}
    except Exception as error:
        return said(cell) | {"status": "failed", "error": f"{type(error).__name__}: {error}"}

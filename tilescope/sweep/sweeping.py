"""Cells on an executor, and their rows in a folder, by what they depend on."""

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
    """Finished rows, a file each, by their keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def known(self) -> frozenset[str]:
        """The keys of rows that can be read."""
        return frozenset(path.stem for path in self.folder.glob("*.json") if self.get(path.stem))

    def get(self, key: str) -> Row | None:
        """A row; ``None`` where there is none, or it cannot be read, or is another's."""
        try:
            row = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return row if isinstance(row, dict) and row.get("key") == key else None

    def put(self, row: Row) -> None:
        """Keep a row that came of a cell; those that failed may not fail again."""
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
    """Run cells, wherever an executor does; gives their rows in the cells' order.

    Args:
        cells: What to run.
        executor: Any of ``concurrent.futures``' kind, as ``distributed.Client().get_executor()``
            is; by default processes of this machine, one a core.
        folder: Where rows are kept as they come.
        resume: Whether rows that are there stand for cells of the same kernel, launch, contents
            of the arguments, seed and version.
        on_row: Called with each row as it comes.
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
    """Rows as they come, by their cells' numbers."""
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
    """Processes, which end at once where what is done with them does not end well."""
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
    """The row of a cell that is done, or of one whose process is gone."""
    try:
        return future.result()
    except BrokenProcessPool:
        return said(cell) | {"status": "broken", "error": "its process died"}
    except Exception as error:
        return said(cell) | {"status": "failed", "error": f"{type(error).__name__}: {error}"}

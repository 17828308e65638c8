"""``tilescope sweep``: kernels by sizes, tiles, GPUs, schedules and seeds."""

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

import click

from simulator.gpus.table import find

from ..cli.errors import UserError
from ..cli.kernel_names import is_file, refuse_pipeline
from ..cli.options import refuse_options
from ..cli.output import write_json, write_text
from ..sweep.cells import Row, grid
from ..sweep.sweeping import sweep
from ..text.sweep import figure, table


def sweep_command(
    target: str, words: tuple[str, ...], sizes: str | None, tiles: str | None, gpus: str | None,
    seeds: str, predict: bool, resume: bool, folder: str, dask: str | None, json_file: str | None,
    svg: str | None, schedule: list[str | int], **how: Any,
) -> int:  # fmt: skip
    """Run ``tilescope sweep``; ``tilescope.usage`` has its options."""
    refuse_options((target, *words))
    refuse_pipeline(target)
    from_file = is_file(target)
    chips = _listed(gpus)
    try:
        for chip in chips:
            find(chip or "h200")
    except ValueError as error:
        raise UserError(str(error)) from None
    named = {"grid": how.pop("grid"), "block": how.pop("block")}
    if not from_file and any(named.values()):
        raise UserError("--grid and --block are for a kernel of your own")
    cells = list(grid(
        (target,) if from_file else (target, *words), _listed(sizes),
        [tile and _number("--tile", tile) for tile in _listed(tiles)], chips,
        schedule,
        [_number("--seed", seed) for seed in seeds.split(",")],
        words=words if from_file else (), predict=predict, **named, **how,
    ))  # fmt: skip

    done = itertools.count(1)

    def print_row(row: Row) -> None:
        came = "kept" if row.get("known") else row["status"]
        what = " ".join(str(row[name]) for name in ("kernel", "size", "tile") if row[name])
        click.echo(f"{next(done)}/{len(cells)} {what}: {came}", err=True)

    with _executor(dask) as executor:
        rows = sweep(cells, executor, folder, resume, print_row)
    if json_file is not None:
        write_json(json_file, {"schema": 1, "rows": rows})
    if "-" not in (json_file, svg):
        click.echo(table(rows))
    if svg is not None:
        try:
            write_text(svg, figure(rows))
        except ValueError as error:
            raise UserError(f"--svg: {error}") from None
    if all(row["status"] != "ok" for row in rows):
        return 2
    wrong = any(r["status"] != "ok" or r.get("errors") or r.get("right") is False for r in rows)
    return int(wrong)


def _listed(text: str | None) -> list[Any]:
    return text.split(",") if text else [None]


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UserError(f"{name} takes whole numbers with commas between, not {text!r}")
    return int(text)


@contextlib.contextmanager
def _executor(address: str | None) -> Iterator[Executor | None]:
    """Yield the executor of a Dask cluster; ``None`` without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--dask needs the package distributed (tilescope's extra dask)") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise UserError(f"--dask {address}: {error}") from None
    with client:
        yield client.get_executor()

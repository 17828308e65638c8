"""``tilescope sweep``: kernels by sizes, tiles, GPUs, schedules and seeds."""

import contextlib
import functools
import itertools
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

import click

from simulator.gpus.table import find

from ..cli.completion import gpus as gpus_named
from ..cli.completion import targets
from ..cli.errors import UserError
from ..cli.kernel_names import is_file, refuse_pipeline
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import launch_options, refuse_options
from ..cli.output import write_json, write_text
from ..sweep.cells import Row, grid
from ..sweep.sweeping import sweep
from ..text.sweep import figure, table

FOLDER = ".tilescope/sweep"


@click.command("sweep", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@click.argument("target", shell_complete=targets)
@click.argument("words", nargs=-1, metavar="[TARGET]... | [ENTRY] [ARGUMENT]...")
@click.option("--size", "sizes", metavar="SIZES", help="With commas between: 64,128x128x64.")
@click.option("--tile", "tiles", metavar="TILES", help="Likewise.")
@click.option(
    "--gpu", "gpus", shell_complete=gpus_named, metavar="NAMES",
    help="Whose caches to follow, or times to predict.",
)  # fmt: skip
@click.option("--seed", "seeds", default="0", show_default=True, metavar="NUMBERS",
              help="For random inputs.")  # fmt: skip
@click.option("--grid", metavar="X[,Y[,Z]]", help="Blocks, for a kernel of your own.")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a block, likewise.")
@click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory.")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro for NVRTC.")
@click.option("-I", "includes", multiple=True, metavar="FOLDER", help="Where headers are.")
@click.option("--arch", help="Virtual architecture.")
@click.option("--build", type=click.Choice(["device", "source"]), help="Which build.")
@click.option("--predict", is_flag=True, help="Predict times on the GPUs; cells are not run whole.")
@click.option("--resume", is_flag=True, help="Rows that are kept stand for the same cells.")
@click.option("--folder", default=FOLDER, show_default=True, metavar="FOLDER",
              help="Where rows are kept.")  # fmt: skip
@click.option("--dask", metavar="ADDRESS", help="Run cells on the Dask cluster there.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("--svg", metavar="FILE", help="Write a figure: times or sectors over sizes.")
@functools.partial(launch_options, several=True)
def sweep_command(
    target: str, words: tuple[str, ...], sizes: str | None, tiles: str | None, gpus: str | None,
    seeds: str, predict: bool, resume: bool, folder: str, dask: str | None, json_file: str | None,
    svg: str | None, schedule: list[str | int], **how: Any,
) -> int:  # fmt: skip
    """Run or predict kernels at every size, with every tile, GPU, schedule and seed.

    TARGETs are kernels of the library, NAME:TILE one with a tile of its own; or one file, whose
    ENTRY and ARGUMENTs follow. In these, in --grid, --block and -D, {size}, {tile} and
    {size/tile} (rounded up) stand for a cell's numbers.

    \b
    Examples:
      tilescope sweep matmul_tiled --size 64,128 --tile 8,16 --schedule lockstep,7
      tilescope sweep matmul_tiled --size 1024,4096 --gpu a100,h200 --predict
      tilescope sweep my.cu scale --size 1024,4096 --tile 128 --grid '{size/tile}'
                      --block '{tile}' 'f32[{size}]=normal' 2.5

    Each cell runs on one core. Its row is kept as it comes; with --resume it stands for a cell of
    the same kernel, launch, contents of the arguments, seed and version.

    Exit code 0: all is right; 1: an error was found, or a cell failed; 2: nothing could be run.
    """  # noqa: D301 - click reads \b
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

"""``tilescope predict``: how fast kernels would be on a GPU that need not be there."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

import simulator
from simulator import Prediction
from simulator.gpus.table import Gpu
from simulator.prediction.rates import Measured, read_measured

from ..cli.argument_spec import is_argument
from ..cli.completion import gpus as gpus_named
from ..cli.errors import UserError
from ..cli.kernel_names import is_file
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, target_options
from ..cli.output import say_report, write_json
from ..cli.progress import ProgressBar
from ..cli.request import Request
from ..cli.target import Target, resolve
from ..gpu.placement import find
from ..text.layout import fitted
from ..text.prediction import predictions


@click.command("predict", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@click.option(
    "--gpu", "gpus", shell_complete=gpus_named, default="h200", show_default=True, metavar="NAMES",
    help="a100, h100, h200, ...: several with commas between, or a file that "
    "python -m benchmarks.gpu wrote.",
)  # fmt: skip
@click.option(
    "--registers", type=click.IntRange(1, 255), metavar="N",
    help="Registers a thread, if another compiler makes the machine code.",
)  # fmt: skip
@click.option(
    "--caches", type=click.Choice(["warm", "cold"]),
    help="For all figures; by default times are warm, traffic and hit rates cold.",
)  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@explain_option
def predict_command(
    request: Request, gpus: str, registers: int | None, caches: str | None, json_file: str | None
) -> None:
    """Say how long kernels would take on a GPU, and what limits them.

    Some blocks are run here, followed through models of L1, L2 and DRAM, and laid over the
    machine code that NVIDIA's compiler makes of them; no GPU is needed. Times are of a launch
    that finds L2 as the same launch left it, DRAM traffic and hit rates of one that finds
    caches empty.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run, but for .toml files. Library kernels
    may be several, each with the same --size; NAME:TILE gives one a tile of its own.

    \b
    Examples:
      tilescope predict matmul_naive matmul_register_tiled:128 --size 4096
      tilescope predict transpose_naive --size 8192 --gpu a100,h100,h200
      tilescope predict my.cu scale --grid 4096 --block 256 f32[1048576] 2.5

    Exit code 0: predicted; 2: it could not be.
    """  # noqa: D301 - click reads \b
    chips = [_chip(name) for name in gpus.split(",")]
    rows: list[tuple[Target, list[Prediction]]] = []
    for target in _targets(request):
        rows.append((target, [_predict(target, *chip, registers, caches or "") for chip in chips]))
    if json_file is not None:
        found = [p.to_dict() | {"name": t.name, "tile": t.tile} for t, ps in rows for p in ps]
        write_json(json_file, {"schema": 1, "predictions": found})
    if json_file != "-":
        say_report(fitted(predictions(rows, caches or "")))


def _chip(name: str) -> tuple[Gpu, Measured | None]:
    """Return a GPU by its name, or by the file of its own measurements."""
    if not name.endswith(".json"):
        return find(name), None
    try:
        measured = read_measured(Path(name).read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: {error}") from None
    return find(measured.gpu), measured


def _predict(
    target: Target, gpu: Gpu, measured: Measured | None, registers: int | None, caches: str
) -> Prediction:
    with ProgressBar(f"{target.name} on {gpu.key}", hint=""):
        return simulator.predict(
            target.kernel, target.grid, target.block, target.args, gpu, target.shared_bytes,
            registers, caches, target.symbols, **target.how,
            constants=measured.rates if measured else None,
        )  # fmt: skip


def _targets(request: Request) -> list[Target]:
    """Return the target; for library kernels, every further word is one more."""
    words = [word for word in request.words if not is_argument(word)]
    if is_file(request.target) or not words or len(words) < len(request.words):
        return [_resolve(request, request.target, request.words)]
    return [_resolve(request, name, ()) for name in (request.target, *words)]


def _resolve(request: Request, name: str, words: Sequence[str]) -> Target:
    tile = request.tile
    plain, _, own = name.partition(":")
    if own and not is_file(name):
        if not own.isdecimal():
            raise UserError(f"{name}: a tile is a number, as in {plain}:16")
        name, tile = plain, int(own)
    return resolve(dataclasses.replace(request, target=name, words=tuple(words), tile=tile), False)

"""``tilescope predict``: how fast kernels would be on a GPU that need not be there."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import simulator
from simulator import Prediction
from simulator.gpus.table import Gpu
from simulator.prediction.rates import Measured, read_measured

from ..cli.argument_spec import is_argument
from ..cli.errors import UserError
from ..cli.kernel_names import is_file
from ..cli.output import say_report, write_json
from ..cli.progress import ProgressBar
from ..cli.request import Request
from ..cli.target import Target, resolve
from ..gpu.placement import find
from ..text.layout import fitted
from ..text.prediction import predictions


def predict_command(
    request: Request, gpus: str, registers: int | None, caches: str | None, json_file: str | None
) -> None:
    """Run ``tilescope predict``; ``tilescope.usage`` has its options."""
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
    """Return a GPU by its name, or from a file of its measurements."""
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

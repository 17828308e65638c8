"""``tilescope time``: how fast kernels are on a GPU."""

import dataclasses

import device

from ..cli.argument_spec import is_argument
from ..cli.errors import UserError
from ..cli.output import say_report, write_json
from ..cli.request import Request
from ..cli.target import Target, resolve
from ..gpu.hardware import device_errors, require_gpu
from ..gpu.prediction_inputs import forecast
from ..gpu.timing import Row, vendor_row, work
from ..text.layout import fitted
from ..text.timing import timings


def time_command(
    request: Request,
    index: int,
    jit_level: int | None,
    launches: int,
    flops: int | None,
    vendor: bool,
    json_file: str | None,
) -> None:
    """Run ``tilescope time``; ``tilescope.usage`` has its options."""
    name = require_gpu(index, "time")
    rows: list[Row] = []
    for target in _targets(request):
        with device_errors():
            timing = device.time_launches(
                target.kernel, target.grid, target.block, target.args, target.shared_bytes,
                index, jit_level, launches, symbols=target.symbols, **target.how,
            )  # fmt: skip
        done = work(target, flops)
        ahead = forecast(target, target.args, target.symbols, name, timing.output.registers or None)
        rows.append(Row(target, timing.times_ms, timing.restored, done, timing, forecast=ahead))
    if vendor:
        rows.append(vendor_row(rows[0].target, index, launches))
    with device_errors():
        release = device.driver_release()
    if json_file is not None:
        content = {"schema": 1, "device": name, "driver_release": release}
        write_json(json_file, content | {"rows": [row.to_dict() for row in rows]})
    if json_file != "-":
        say_report(fitted(timings(rows, name, release)))


def _targets(request: Request) -> list[Target]:
    """Return the target; for library kernels, every further word is one more."""
    first = resolve(dataclasses.replace(request, words=()), False) if _several(request) else None
    if first is None:
        return [resolve(request, False)]
    targets = [first]
    for name in request.words:
        other = resolve(dataclasses.replace(request, target=name, words=()), False)
        if other.entry is None:
            raise UserError(f"{name} is a file: time it by itself")
        targets.append(other)
    return targets


def _several(request: Request) -> bool:
    """Whether the words after a library kernel name further kernels."""
    named = [word for word in request.words if not is_argument(word)]
    library = not request.target.endswith((".cu", ".cuh", ".cpp", ".cc", ".cxx", ".ptx"))
    return library and bool(named) and len(named) == len(request.words)

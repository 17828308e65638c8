"""``tilescope validate``: NumPy, simulator and GPU on the same launch."""

import click

import device

from ..cli.output import say_report, write_json
from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.hardware import (
    device_errors,
    numpy_product,
    reference,
    require_gpu,
)
from ..text.layout import fitted
from ..text.validation import validation


def validate_command(
    ctx: click.Context, request: Request, index: int, jit_level: int | None, json_file: str | None
) -> None:
    """Run ``tilescope validate``; ``tilescope.usage`` has its options."""
    require_gpu(index, "validate")
    target = resolve(request)
    with device_errors():
        found = device.validate(
            target.kernel, target.grid, target.block, target.args, reference(target),
            target.shared_bytes, index, jit_level, target.symbols, **target.how,
        )  # fmt: skip
        release = device.driver_release()
    if json_file is not None:
        content = found.to_dict() | {"name": target.name, "driver_release": release}
        write_json(json_file, content)
    if json_file != "-":
        say_report(fitted(validation(target, found, release, numpy_product(target))))
    ctx.exit(int(not found.validated))

"""``tilescope _launch``: a single launch on the GPU, for profilers."""

import dataclasses
import json

import click

import device

from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.hardware import device_errors


def launch_command(request: Request, index: int, jit_level: int | None, launches: int) -> None:
    """Run ``tilescope _launch``; ``tilescope.usage`` has its options."""
    target = resolve(request, False)
    with device_errors():
        out = device.launch(
            target.kernel, target.grid, target.block, target.args, target.shared_bytes, index,
            jit_level, launches, target.symbols, **target.how,
        )  # fmt: skip
    click.echo(json.dumps(dataclasses.asdict(out)))

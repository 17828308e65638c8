"""``tilescope _launch``: a single launch on the GPU, for profilers."""

import dataclasses
import json

import click

import device

from ..cli.options import target_options
from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.hardware import device_errors, device_option, jit_option


@click.command("_launch", hidden=True, context_settings={"ignore_unknown_options": True})
@target_options
@device_option
@jit_option
@click.option("--launches", type=click.IntRange(1), default=1)
def launch_command(request: Request, index: int, jit_level: int | None, launches: int) -> None:
    """Launch on the GPU, from equal arrays each time; tilescope counters runs this under ncu."""
    target = resolve(request, False)
    with device_errors():
        out = device.launch(
            target.kernel, target.grid, target.block, target.args, target.shared_bytes, index,
            jit_level, launches, target.symbols, **target.how,
        )  # fmt: skip
    click.echo(json.dumps(dataclasses.asdict(out)))

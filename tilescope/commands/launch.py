"""``tilescope _launch``: one launch on the GPU and nothing else, for profilers to run."""

from __future__ import annotations

import dataclasses
import json

import click

import device

from ..hardware import device_errors, device_option, jit_option
from ..options import target_options
from ..target import Request, resolve


@click.command("_launch", hidden=True, context_settings={"ignore_unknown_options": True})
@target_options
@device_option
@jit_option
def launch_command(request: Request, index: int, jit_level: int | None) -> None:
    """Launch once on the GPU; tilescope counters runs this under ncu."""
    target = resolve(request)
    with device_errors():
        out = device.launch(
            target.kernel, target.grid, target.block, target.args, target.shared_bytes, index,
            jit_level,
        )  # fmt: skip
    click.echo(json.dumps(dataclasses.asdict(out)))

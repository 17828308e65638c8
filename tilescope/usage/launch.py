"""Usage of ``tilescope _launch``: its options and help."""

from typing import Any

import click

from ..cli.options import device_option, jit_option, target_options


@click.command("_launch", hidden=True, context_settings={"ignore_unknown_options": True})
@target_options
@device_option
@jit_option
@click.option("--launches", type=click.IntRange(1), default=1)
def launch_command(*given: Any, **options: Any) -> Any:
    """Launch on the GPU, from equal arrays each time; tilescope counters runs this under ncu."""
    from ..commands.launch import launch_command as body

    return body(*given, **options)

"""Usage of ``tilescope counters``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import device_option, target_options


@click.command("counters", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@device_option
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.pass_context
def counters_command(*given: Any, **options: Any) -> Any:
    """Hold the simulator's counters to Nsight Compute's.

    Runs the launch on the GPU under ncu, once with the driver's compiler at level 0, where
    machine code follows the PTX, and once at its default, and shows all three.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run, but for .toml files. Needs a GPU,
    cuda-python, and ncu with the right to read counters.

    \b
    Examples:
      tilescope counters matmul_tiled --size 64
      tilescope counters reduction_shuffle --size 4096 --json -

    Exit code 0: none differs at level 0; 1: some do; 2: it could not run, for lack of a GPU
    or of ncu perhaps.
    """  # noqa: D301 - click reads \b
    from ..commands.counters import counters_command as body

    return body(*given, **options)

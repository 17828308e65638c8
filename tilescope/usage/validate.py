"""Usage of ``tilescope validate``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import device_option, jit_option, result_options


@click.command("validate", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@result_options
@device_option
@jit_option
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.pass_context
def validate_command(*given: Any, **options: Any) -> Any:
    """Hold the simulator to a GPU, bit for bit, and both to NumPy.

    Launches the identical PTX on copies of the same inputs. The simulator's hazard checks
    come first: a kernel with an error is not launched on the GPU.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run, but for .toml files. Needs a GPU and
    cuda-python.

    \b
    Examples:
      tilescope validate matmul_tiled --size 70x50x90 --tile 16
      tilescope validate softmax_rows --size 64 --json -
      tilescope validate my.cu scale --grid 4 --block 256 f32[1000]=normal 2.5

    Exit code 0: validated; 1: results differ, or the kernel has a hazard; 2: it could not
    run, for lack of a GPU perhaps.
    """  # noqa: D301 - click reads \b
    from ..commands.validate import validate_command as body

    return body(*given, **options)

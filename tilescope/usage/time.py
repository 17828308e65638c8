"""Usage of ``tilescope time``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import device_option, jit_option, target_options


@click.command("time", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@device_option
@jit_option
@click.option(
    "--launches", type=click.IntRange(1), default=50, show_default=True, help="To time of each."
)
@click.option("--flops", type=click.IntRange(0), help="FLOPs of a launch, where you know better.")
@click.option("--vendor", is_flag=True, help="Also cuBLAS, through PyTorch or CuPy.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
def time_command(*given: Any, **options: Any) -> Any:
    """Time kernels on a GPU: median of many launches, GFLOP/s.

    Library kernels may be several, each with the same --size. No copy is made between
    launches, unless the kernel accumulates into its arrays; then they are put back
    outside the time taken. FLOPs of matrix products are 2 M N K, the useful ones;
    of other kernels what the simulator counts. Beside the time stands what tilescope
    predict says of that GPU, if its table has it.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run, but for .toml files. Needs a GPU and
    cuda-python.

    \b
    Examples:
      tilescope time matmul_naive matmul_tiled --size 1024x1024x1024
      tilescope time matmul_register_tiled --size 4096 --vendor
      tilescope time my.cu scale --grid 4 --block 256 f32[1000]=normal 2.5

    Exit code 0: timed; 2: it could not run, for lack of a GPU perhaps.
    """  # noqa: D301 - click reads \b
    from ..commands.time import time_command as body

    return body(*given, **options)

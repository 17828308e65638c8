"""Usage of ``tilescope predict``: its options and help."""

from typing import Any

import click

from ..cli.completion import gpus as gpus_named
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, target_options


@click.command("predict", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@click.option(
    "--gpu", "gpus", shell_complete=gpus_named, default="h200", show_default=True, metavar="NAMES",
    help="a100, h100, h200, ...: several with commas between, or a file that "
    "python -m benchmarks.gpu wrote.",
)  # fmt: skip
@click.option(
    "--registers", type=click.IntRange(1, 255), metavar="N",
    help="Registers a thread, if another compiler makes the machine code.",
)  # fmt: skip
@click.option(
    "--caches", type=click.Choice(["warm", "cold"]),
    help="For all figures; by default times are warm, traffic and hit rates cold.",
)  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@explain_option
def predict_command(*given: Any, **options: Any) -> Any:
    """Say how long kernels would take on a GPU, and what limits them.

    Some blocks are run here, followed through models of L1, L2 and DRAM, and laid over the
    machine code that NVIDIA's compiler makes of them; no GPU is needed. Times are of a launch
    that finds L2 as the same launch left it, DRAM traffic and hit rates of one that finds
    caches empty.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run, but for .toml files. Library kernels
    may be several, each with the same --size; NAME:TILE gives one a tile of its own.

    \b
    Examples:
      tilescope predict matmul_naive matmul_register_tiled:128 --size 4096
      tilescope predict transpose_naive --size 8192 --gpu a100,h100,h200
      tilescope predict my.cu scale --grid 4096 --block 256 f32[1048576] 2.5

    Exit code 0: predicted; 2: it could not be.
    """  # noqa: D301 - click reads \b
    from ..commands.predict import predict_command as body

    return body(*given, **options)

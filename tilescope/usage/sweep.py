"""Usage of ``tilescope sweep``: its options and help."""

import functools
from typing import Any

import click

from ..cli.completion import gpus as gpus_named
from ..cli.completion import targets
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import launch_options

FOLDER = ".tilescope/sweep"


@click.command("sweep", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@click.argument("target", shell_complete=targets)
@click.argument("words", nargs=-1, metavar="[TARGET]... | [ENTRY] [ARGUMENT]...")
@click.option("--size", "sizes", metavar="SIZES", help="With commas between: 64,128x128x64.")
@click.option("--tile", "tiles", metavar="TILES", help="Likewise.")
@click.option(
    "--gpu", "gpus", shell_complete=gpus_named, metavar="NAMES",
    help="Whose caches to follow, or times to predict.",
)  # fmt: skip
@click.option("--seed", "seeds", default="0", show_default=True, metavar="NUMBERS",
              help="For random inputs.")  # fmt: skip
@click.option("--grid", metavar="X[,Y[,Z]]", help="Blocks, for a kernel of your own.")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a block, likewise.")
@click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory.")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro for NVRTC.")
@click.option("-I", "includes", multiple=True, metavar="FOLDER", help="Where headers are.")
@click.option("--arch", help="Virtual architecture.")
@click.option("--build", type=click.Choice(["device", "source"]), help="Which build.")
@click.option("--predict", is_flag=True, help="Predict times on the GPUs; cells are not run whole.")
@click.option("--resume", is_flag=True, help="Rows that are kept stand for the same cells.")
@click.option("--folder", default=FOLDER, show_default=True, metavar="FOLDER",
              help="Where rows are kept.")  # fmt: skip
@click.option("--dask", metavar="ADDRESS", help="Run cells on the Dask cluster there.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("--svg", metavar="FILE", help="Write a figure: times or sectors over sizes.")
@functools.partial(launch_options, several=True)
def sweep_command(*given: Any, **options: Any) -> Any:
    """Run or predict kernels at every size, with every tile, GPU, schedule and seed.

    TARGETs are kernels of the library, NAME:TILE one with a tile of its own; or one file, whose
    ENTRY and ARGUMENTs follow. In these, in --grid, --block and -D, {size}, {tile} and
    {size/tile} (rounded up) stand for a cell's numbers.

    \b
    Examples:
      tilescope sweep matmul_tiled --size 64,128 --tile 8,16 --schedule lockstep,7
      tilescope sweep matmul_tiled --size 1024,4096 --gpu a100,h200 --predict
      tilescope sweep my.cu scale --size 1024,4096 --tile 128 --grid '{size/tile}'
                      --block '{tile}' 'f32[{size}]=normal' 2.5

    Each cell runs on one core. Its row is kept as it comes; with --resume it stands for a cell of
    the same kernel, launch, contents of the arguments, seed and version.

    Exit code 0: all is right; 1: an error was found, or a cell failed; 2: nothing could be run.
    """  # noqa: D301 - click reads \b
    from ..commands.sweep import sweep_command as body

    return body(*given, **options)

"""The command ``tilescope``; each subcommand is a module in ``tilescope.commands``."""

import platform
from importlib import metadata

import click

from ..commands.barriers import barriers_command
from ..commands.check import check_command
from ..commands.counters import counters_command
from ..commands.exec import exec_command
from ..commands.init import init_command
from ..commands.launch import launch_command
from ..commands.list import list_command
from ..commands.predict import predict_command
from ..commands.ptx import ptx_command
from ..commands.run import run_command
from ..commands.sweep import sweep_command
from ..commands.time import time_command
from ..commands.validate import validate_command
from ..commands.view import view_command
from .errors import CommandGroup


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the information that a bug report needs: versions, and floating-point behaviour."""
    if not wanted or context.resilient_parsing:
        return
    from simulator.isa.numerics.arithmetic import fused_products

    used = [f"{name} {_installed(name)}" for name in ("numpy", "nvidia-cuda-nvrtc", "cuda-python")]
    click.echo(f"tilescope {_installed('tilescope')} (Python {platform.python_version()})")
    click.echo(", ".join(used))
    click.echo(f"fused multiply-add: {fused_products()}")
    context.exit()


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


@click.group(
    "tilescope", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version)
def main() -> None:
    """Run CUDA kernels without a GPU: count their memory traffic, find their hazards.

    \b
    Examples:
      tilescope list
      tilescope init my_kernels
      tilescope run matmul_tiled --size 256x256x256 --tile 16
      tilescope run matmul_naive --size 256 --compare matmul_tiled
      tilescope check matmul_missing_first_barrier --size 64
      tilescope barriers matmul_tiled --size 64
      tilescope view matmul_tiled --size 64 --open
      tilescope exec my_script.py
      tilescope predict matmul_naive matmul_tiled --size 1024 --gpu h200
      tilescope sweep matmul_tiled --size 256,512 --tile 8,16,32 --predict
      tilescope run my.cu 'fill<float>' --grid 4 --block 256 f32[1000] 1.5

    \b
    Exit codes:
      0  it ran, and nothing is wrong
      1  a hazard, or a wrong result
      2  it could not run; stderr says why
    """  # noqa: D301 - click reads \b


main.add_command(run_command)
main.add_command(check_command)
main.add_command(barriers_command)
main.add_command(view_command)
main.add_command(exec_command)
main.add_command(init_command)
main.add_command(list_command)
main.add_command(ptx_command)
main.add_command(validate_command)
main.add_command(time_command)
main.add_command(predict_command)
main.add_command(sweep_command)
main.add_command(counters_command)
main.add_command(launch_command)

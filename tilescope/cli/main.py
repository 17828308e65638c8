"""The command ``tilescope``; each subcommand is a module in ``tilescope.usage``."""

import platform

import click

from .menu.command_group import CommandGroup


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
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


@click.group(
    "tilescope", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
    help="Show the versions that a bug report needs.",
)  # fmt: skip
def main() -> None:
    """Run CUDA kernels without a GPU: count their memory traffic, find their hazards.

    \b
    Start here:
      tilescope FILE.cu     # what a .cu, .ptx, .py file or a program holds
      tilescope help check  # a command; also help raw-race, help sectors

    \b
    Examples:
      tilescope run matmul_naive --size 256 --compare matmul_tiled
      tilescope view matmul_tiled --size 64 --open
      tilescope predict matmul_naive matmul_tiled --size 1024 --gpu h200
      tilescope check matmul_missing_first_barrier --size 64
      tilescope exec my_script.py
      tilescope run my.cu 'fill<float>' --grid 4 --block 256 f32[1000] 1.5
    """  # noqa: D301 - click reads \b

"""Usage of ``tilescope run``: its options and help."""

from typing import Any

import click

from ..cli.completion import gpus as gpus_named
from ..cli.menu.choices import SORTS
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, launch_options, result_options


@click.command("run", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@result_options
@launch_options
@click.option("--compare", "other", metavar="OTHER", help="What to put beside it.")
@click.option("--by-line", is_flag=True, help="The traffic of every source line.")
@click.option("--sort", type=click.Choice(SORTS), help="What the lines are sorted by.")
@click.option(
    "--gpu",
    shell_complete=gpus_named,
    metavar="NAME",
    help="Occupancy, roofline, advice there: a100, h200...",
)
@click.option(
    "--registers",
    type=click.IntRange(1, 255),
    metavar="N",
    help="Registers a thread, for occupancy without that GPU.",
)
@click.option("--plot", "plot_file", metavar="FILE", help="Write the roofline as SVG; - is stdout.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only; the exit code tells.")
@explain_option
@click.pass_context
def run_command(*given: Any, **options: Any) -> Any:
    """Run a kernel and report its memory traffic.

    TARGET is a kernel of the library, a .cu file, a .ptx file, or a .toml file with
    several launches (docs/scripts.md). For a file, ENTRY is the kernel as C++ writes it
    ('tiled<16>', of overloads 'k(float*)'; in PTX its name there), followed by its arguments:

    \b
      f32[64,64]=normal    an array: bf16 f16 f32 f64, i8 to i64, u8 to u64;
                           zeros (if left out), ones, normal, uniform, arange,
                           a number, @file.npy, or unset: as cudaMalloc leaves it
      64  1.5  -3  u8:3    a number, of the parameter's type or of its own
      A[32:]               a part of the array that is the parameter A
      struct(f32[64], 64)  a structure by value: a word for each field
      sym:coeff=f32[3]=1   what a __constant__ or __device__ variable holds:
                           an array, a number, struct(...), a texture
      texture:linear:wrap:normalized:f32[64,64]=normal  an object; also point,
                           clamp, border, mirror, layered, x2, x4 (channels),
                           floats (of integers), fetch (for tex1Dfetch)
      surface:f32[8,8]     likewise

    \b
    Examples:
      tilescope run matmul_tiled --size 256x256x256 --tile 16
      tilescope run matmul_naive --size 256 --compare matmul_tiled
      tilescope run matmul_transposed --size 64 --by-line
      tilescope run matmul_tiled --gpu h200 --registers 34 --plot roofline.svg
      tilescope run my.cu 'tiled<16>' --grid 4,4 --block 16,16 \\
          f32[64,64]=normal f32[64,64]=normal f32[64,64] 64 64 64
      tilescope run my.cu slow --grid 4 --block 256 f32[1000]=ones --compare fast
      tilescope run kernel.ptx scale --grid 4 --block 256 f32[1000]=ones -3
      tilescope run matmul_naive --json - --quiet

    --compare takes a kernel of the library; beside a file, a kernel of that file or
    another file, with what of the launch is different: 'fast.cu tiled --block 8,8'.

    Where nothing is wrong, the report ends with what would make the kernel faster there
    (on an H200, if no GPU is named): three sentences at most, those of tilescope predict.

    Exit code 0: nothing wrong; 1: a hazard or a wrong result; 2: it could not run.
    """  # noqa: D301 - click reads \b
    from ..commands.run import run_command as body

    return body(*given, **options)

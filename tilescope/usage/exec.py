"""Usage of ``tilescope exec``: its options and help."""

from pathlib import Path
from typing import Any

import click

from ..cli.completion import gpus as gpus_named
from ..cli.menu.choices import CHOICES
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import engine_option


@click.command("exec", cls=GroupedCommand, context_settings={"allow_interspersed_args": False})
@click.option(
    "-k", "--kernel", "only", multiple=True, help="Check this kernel only; may be repeated."
)
@click.option("--max-launches",  type=click.IntRange(0), default=0, metavar="N",
              help="Stop the script after so many launches; 0: never.")  # fmt: skip
@click.option("--sample", type=click.IntRange(0), default=0, metavar="N",
              help="Check N of the launches that are alike (kernel, shapes, types).")  # fmt: skip
@click.option("--expect-launches", type=click.IntRange(1), metavar="N",
              help="Exit 3 unless N launches are made.")  # fmt: skip
@click.option("--predict", shell_complete=gpus_named, metavar="GPU",
              help="Predict the time of each launch on a GPU.")  # fmt: skip
@click.option("--schedule", default="lockstep", show_default=True,
              help="lockstep, warps, reverse, or a seed.")  # fmt: skip
@engine_option
@click.option("--gpu", shell_complete=gpus_named, default="h200", show_default=True, metavar="NAME",
              help="GPU whose registers and shared memory a block must fit into.")  # fmt: skip
@click.option("--equal-writes", type=click.Choice(CHOICES), default="warning", show_default=True,
              help="Races that write the same value.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), default="error",
              show_default=True, help="What makes the exit code 1.")  # fmt: skip
@click.option(
    "-I", "includes", multiple=True, metavar="DIR", help="For nvcc, as -D -L -l -std -arch."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", hidden=True)
@click.option("-L", "folders", multiple=True, metavar="DIR", hidden=True)
@click.option("-l", "libraries", multiple=True, metavar="NAME", hidden=True)
@click.option("-std", "standard", metavar="STD", hidden=True)
@click.option("-arch", "arch", metavar="ARCH", hidden=True)
@click.option("--nvcc", "further", metavar="WORDS",
              help="Further options of nvcc: --nvcc '--extended-lambda -O3'.")  # fmt: skip
@click.option("--nvcc-flags", "print_flags", is_flag=True,
              help="Print what nvcc needs to build a program for exec, and end.")  # fmt: skip
@click.option("--fix", is_flag=True,
              help="Apply verified fixes to the .cu files and run again.")  # fmt: skip
@click.option("--diff", "only_diff", is_flag=True,
              help="Print fixes as a diff; the program prints on stderr.")  # fmt: skip
@click.option("--allow-none", is_flag=True, help="Exit 0 where nothing was launched, not 3.")
@click.option("--view", "page", metavar="FILE", help="Write a page of all launches.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF 2.1.0, likewise.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but what the script prints.")
@click.argument("script", required=False, type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def exec_command(*given: Any, **options: Any) -> Any:
    """Run a Python script or a CUDA program with its kernels on the simulator.

    SCRIPT is a Python script (numba.cuda, Triton, cuda.core, cuda.bindings, PyTorch and its C++
    extensions), a program that nvcc has built with --nvcc-flags, or one or several .cu and .cpp
    files, which are compiled with nvcc first. Launches are simulated, counted and checked; nothing
    is changed, and no driver is touched. A program itself runs natively, with your rights. Options
    of this command stand before SCRIPT, those of the script behind it.

    \b
    Examples:
      tilescope exec train_step.py
      tilescope exec ./a.out 1024
      tilescope exec -I include main.cu kernels.cu --size 256
      tilescope exec --json report.json --predict h200 ./a.out 1024
      tilescope exec --fix main.cu
      tilescope exec -k hist --view hist.html train_step.py --epochs 1
      NVCC_APPEND_FLAGS="$(tilescope exec --nvcc-flags)" make

    Exit code: 0 clean, 1 hazards (--fail-on), 2 refused, 3 nothing was launched (--allow-none)
    or other than --expect-launches; its own if it failed by itself, 128 + n for a signal.
    """  # noqa: D301 - click reads \b
    from ..commands.exec import exec_command as body

    return body(*given, **options)

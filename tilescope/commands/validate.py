"""``tilescope validate``: NumPy, simulator and GPU on the same launch."""

import click

import device

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import result_options
from ..cli.output import say_report, write_json
from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.hardware import (
    device_errors,
    device_option,
    jit_option,
    numpy_product,
    reference,
    require_gpu,
)
from ..text.layout import fitted
from ..text.validation import validation


@click.command("validate", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@result_options
@device_option
@jit_option
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.pass_context
def validate_command(
    ctx: click.Context, request: Request, index: int, jit_level: int | None, json_file: str | None
) -> None:
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
    require_gpu(index, "validate")
    target = resolve(request)
    with device_errors():
        found = device.validate(
            target.kernel, target.grid, target.block, target.args, reference(target),
            target.shared_bytes, index, jit_level, target.symbols, **target.how,
        )  # fmt: skip
        release = device.driver_release()
    if json_file is not None:
        content = found.to_dict() | {"name": target.name, "driver_release": release}
        write_json(json_file, content)
    if json_file != "-":
        say_report(fitted(validation(target, found, release, numpy_product(target))))
    ctx.exit(int(not found.validated))

"""``tilescope ptx``: a kernel's PTX, and what the simulator makes of it."""

import click

from kernels.source_access import plain
from simulator.compile.compiler import compile_ptx
from simulator.compile.dump_ir import listing

from ..cli.errors import UserError, warn
from ..cli.kernel_names import is_file
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import target_options
from ..cli.request import Request
from ..cli.target import kernel_of


@click.command("ptx", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@click.option("--steps", is_flag=True, help="Show the simulator's steps instead, block by block.")
def ptx_command(request: Request, steps: bool) -> None:
    """Show the PTX of a kernel, or the steps the simulator takes for it.

    TARGET and ENTRY are those of tilescope run; nothing is launched, so arguments and shapes
    may be left out. A line of --steps has the line of the PTX, the line of the source, and
    what each thread does; r5 is a register, @r5 a guard, and r5:f32 its bits as that type.

    \b
    Examples:
      tilescope ptx matmul_tiled
      tilescope ptx matmul_tiled --steps --build source
      tilescope ptx my.cu 'tiled<16>' --steps
    """  # noqa: D301 - click reads \b
    kernel = kernel_of(request)
    for note in kernel.notes:
        warn(note)
    if not is_file(request.target) and request.words:
        raise UserError(f"{request.target} is the library's; {request.words[0]!r} is one too many")
    click.echo(listing(compile_ptx(kernel.ptx, kernel.entry)) if steps else plain(kernel.ptx))

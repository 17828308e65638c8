"""``tilescope ptx``: a kernel's PTX, and what the simulator makes of it."""

import click

from kernels.source_access import plain
from simulator.compile.compiler import compile_ptx
from simulator.compile.dump_ir import listing

from ..cli.errors import UserError, warn
from ..cli.kernel_names import is_file
from ..cli.request import Request
from ..cli.target import kernel_of


def ptx_command(request: Request, steps: bool) -> None:
    """Run ``tilescope ptx``; ``tilescope.usage`` has its options."""
    kernel = kernel_of(request)
    for note in kernel.notes:
        warn(note)
    if not is_file(request.target) and request.words:
        raise UserError(f"{request.target} is the library's; {request.words[0]!r} is one too many")
    click.echo(listing(compile_ptx(kernel.ptx, kernel.entry)) if steps else plain(kernel.ptx))

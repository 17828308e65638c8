"""``tilescope list``: the kernels of the library or of a file, one line each."""

import click

from kernels import library

from ..cli.errors import UserError
from ..cli.host_program import is_cuda, kernels_of, launches_of
from ..cli.kernel_names import names
from ..cli.menu.found_file import signature_lines
from ..text.launches import overview
from ..text.layout import columns, fitted


def list_command(file: str | None, faulty: bool) -> None:
    """Run ``tilescope list``; ``tilescope.usage`` has its options."""
    if file is not None:
        if faulty:
            raise UserError("--faulty is for the library, not for a file")
        has = launches_of(file, ()) if is_cuda(file) else ([], [])
        found = kernels_of(file, ()) if any(has) else names(file)
        lines = signature_lines(file) if is_cuda(file) else []
        click.echo("\n".join(["kernels:", *lines] if lines else overview(file, [], [], found, ())))
        if any(has):
            click.echo("\n".join(overview(file, *has, found, ())[1:]))
        return
    kernels = [library.get(name) for name in library.names()]
    wrong = {kernel.name for kernel in kernels if kernel.twin}
    wrong |= {kernel.twin for kernel in kernels if kernel.twin == f"{kernel.name}_fixed"}
    shown = [kernel for kernel in kernels if (kernel.name in wrong) == faulty]
    heads = [f"{kernel.name}{'' if faulty else _takes(kernel)}" for kernel in shown]
    width = min(max(map(len, heads)), columns() // 2 - 5)
    for head, kernel in zip(heads, shown, strict=True):
        click.echo(fitted(f"{head:<{width}}  {kernel.summary}"))
    if not faulty:
        click.echo(
            fitted(f"\nand {len(wrong)} with a fault, or their twins: tilescope list --faulty")
        )


def _takes(kernel: library.LibraryKernel) -> str:
    """Return what can be chosen of a library kernel: its sizes, and whether it has tiles."""
    return f" {'x'.join(kernel.axes)}{', tile' * (len(kernel.tiles) > 1)}"

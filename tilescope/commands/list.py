"""``tilescope list``: the library, one line each."""

import click

from kernels import library

from ..text.layout import columns, fitted


@click.command("list")
@click.option("--faulty", is_flag=True, help="Those with a known fault, each beside its twin.")
def list_command(faulty: bool) -> None:
    """Show the kernels of the library, one line each.

    Each faulty kernel commits one mistake for tilescope check to find; its twin is the same
    without it.

    \b
    Examples:
      tilescope list
      tilescope run matmul_padded --size 128      # then run one
      tilescope list --faulty
      tilescope check faulty_shared_raw
    """  # noqa: D301 - click reads \b
    kernels = [library.get(name) for name in library.names()]
    wrong = {kernel.name for kernel in kernels if kernel.twin}
    wrong |= {kernel.twin for kernel in kernels if kernel.twin == f"{kernel.name}_fixed"}
    shown = [kernel for kernel in kernels if (kernel.name in wrong) == faulty]
    width = min(max(len(kernel.name) for kernel in shown), columns() // 2 - 6)
    for kernel in shown:
        click.echo(fitted(f"{kernel.name:<{width}}  {kernel.summary}"))
    if not faulty:
        click.echo(
            fitted(f"\nand {len(wrong)} with a fault, or their twins: tilescope list --faulty")
        )

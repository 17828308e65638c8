"""``tilescope list``: the library, one line each."""

import click

from kernels import library


@click.command("list")
def list_command() -> None:
    """Show the kernels of the library, one line each.

    \b
    Example:
      tilescope list
      tilescope run matmul_padded --size 128      # then run one
    """  # noqa: D301 - click reads \b
    kernels = [library.get(name) for name in library.names()]
    width = max(len(kernel.name) for kernel in kernels)
    for kernel in kernels:
        click.echo(f"{kernel.name:<{width}}  {kernel.summary}")

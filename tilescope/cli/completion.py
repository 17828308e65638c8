"""Shell completion: kernels and files for a target, names of GPUs."""

import click
from click.shell_completion import CompletionItem


def targets(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete kernels of the library, and files."""
    from kernels import library

    found = [CompletionItem(name) for name in library.names() if name.startswith(word)]
    return [*found, CompletionItem(word, type="file")]


def gpus(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete the last GPU of a comma-separated list."""
    from simulator.gpus.table import GPUS

    before, comma, last = word.rpartition(",")
    return [CompletionItem(before + comma + name) for name in GPUS if name.startswith(last)]

"""What a shell completes: kernels and files for a target, GPUs by name."""

import click
from click.shell_completion import CompletionItem

from kernels import library
from simulator.gpus.table import GPUS


def targets(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Kernels of the library, and files."""
    found = [CompletionItem(name) for name in library.names() if name.startswith(word)]
    return [*found, CompletionItem(word, type="file")]


def gpus(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """GPUs, the last of several with commas between."""
    before, comma, last = word.rpartition(",")
    return [CompletionItem(before + comma + name) for name in GPUS if name.startswith(last)]

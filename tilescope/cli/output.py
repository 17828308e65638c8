"""Output of commands: files, and stdout whose reader may have closed the pipe."""

import contextlib
import errno
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

import click

from ..text.colour import painted
from ..text.width import has_colour
from .errors import DISCARDED

EXPLAIN = "tilescope.explain"
"""Key of ``Context.meta``: the reports whose words are explained at the end."""
_LONG = 1 << 20
"""Characters of JSON that are not indented, which would take five times as long: a program's
launches can be thousands."""


def write_json(file: str, content: dict[str, Any]) -> None:
    """Write JSON to a file, or to standard output for ``-``: indented, unless it is long."""
    text = json.dumps(content)
    if len(text) < _LONG:
        text = json.dumps(content, indent=2)
    write_text(file, text + "\n")


def write_text(file: str, text: str) -> None:
    """Write a text to a file or standard output; undecodable names are escaped."""
    if file == "-":
        say(text, nl=False)
    else:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")


def say(text: str | bytes, err: bool = False, nl: bool = True) -> None:
    """Print immediately; after the reader has closed the pipe, output is discarded."""
    try:
        click.echo(text, nl=nl, err=err)
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        stream = sys.stderr if err else sys.stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        context = click.get_current_context(silent=True)
        if context and not err:
            context.meta[DISCARDED] = True


def say_report(text: str, err: bool = False) -> None:
    """Print a report, in colour on a terminal, and record it for ``--explain``."""
    context = click.get_current_context(silent=True)
    if context and not err:
        context.meta.get(EXPLAIN, []).append(text)
    say(painted(text) if has_colour(sys.stderr if err else sys.stdout) else text, err=err)


def reader_gone() -> bool:
    """Whether standard output is a pipe whose reader has closed it."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # no poll, or no file
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    return False

"""Failures of commands: one line on stderr and an exit code, never a traceback."""

import click

CANNOT_RUN = 2
INTERRUPTED = 130
PIPE_CLOSED = 141
"""Exit codes; the last two are what a shell reports for SIGINT and SIGPIPE."""
DISCARDED = "tilescope.discarded"
"""In a click context's ``meta``: whether output was discarded because a pipe has no reader."""


class UserError(Exception):
    """An invalid command line; the message explains it."""


def warn(message: str) -> None:
    """Print a likely mistake that does not prevent the command."""
    click.echo(f"warning: {message}", err=True)


def note(message: str) -> None:
    """Print on stderr what was decided for the user."""
    from ..text.layout import fitted

    click.echo(fitted(f"note: {message}"), err=True)

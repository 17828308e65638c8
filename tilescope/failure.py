"""How a command fails: one clear line on stderr and an exit code, never a traceback."""

import errno
import os
import sys
import warnings
from typing import Any, NoReturn

import click

from kernels import KernelError
from simulator import ArgumentWarning, SimulatorError

CANNOT_RUN = 2
INTERRUPTED = 130
PIPE_CLOSED = 141
"""Exit codes; the last two are what a shell reports for SIGINT and SIGPIPE."""


class UserError(Exception):
    """Something in the command line that cannot be; the message says what."""


class CommandGroup(click.Group):
    """Commands whose errors are told in one line."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command line and leave with its exit code."""
        extra["standalone_mode"] = False  # errors come here, not to click's own report
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ArgumentWarning)  # told once, when it is read
                code = super().main(*args, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(CANNOT_RUN)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except click.ClickException as error:
            _fail(_usage(error))
        except (UserError, KernelError, SimulatorError) as error:
            _fail(str(error))
        except MemoryError as error:
            _fail(f"not enough memory: {error}" if str(error) else "not enough memory")
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that closed the pipe ends it quietly."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # What is still buffered goes nowhere, rather than to a second error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return PIPE_CLOSED
        return code


def warn(message: str) -> None:
    """Tell of a likely mistake that does not keep the command from running."""
    click.echo(f"warning: {message}", err=True)


def _fail(message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(CANNOT_RUN)


def _usage(error: click.ClickException) -> str:
    """A usage error on one line, with where to read on."""
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if context else message

"""Failures of commands: one line on stderr and an exit code, never a traceback."""

import difflib
import errno
import os
import sys
import warnings
from typing import Any, NoReturn

import click

from kernels import KernelError
from simulator import ArgumentWarning, SimulatorError

from ..text.layout import columns

CANNOT_RUN = 2
INTERRUPTED = 130
PIPE_CLOSED = 141
"""Exit codes; the last two are what a shell reports for SIGINT and SIGPIPE."""
_LOG = 24
"""Lines of a compiler's log that are shown."""


class UserError(Exception):
    """An invalid command line; the message explains it."""


class CommandGroup(click.Group):
    """Group of commands whose errors are printed in one line."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command line and exit with its code."""
        extra["standalone_mode"] = False  # errors come here, not to click's own report
        extra.setdefault("terminal_width", columns())  # click's own least is 50
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed, as by >&-: the exit code is worth having
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
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
        except KernelError as error:
            _fail(_shortened(str(error)))
        except (UserError, SimulatorError) as error:
            _fail(str(error))
        except MemoryError as error:
            _fail(f"not enough memory: {error}" if str(error) else "not enough memory")
        except OSError as error:
            where = error.filename or "cannot write"
            _fail(f"{where}: {error.strerror}" if error.strerror else str(error))
        sys.exit(code if isinstance(code, int) else 0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word; suggests similar ones if it is unknown."""
        word = args[0]
        if word in self.commands or word.startswith("-"):
            return super().resolve_command(ctx, args)
        shown = [name for name, command in self.commands.items() if not command.hidden]
        near = difflib.get_close_matches(word, shown, n=1)
        if near:
            hint = f"did you mean {near[0]}?"
        elif len(args) > 1 or "." in word or "_" in word:
            hint = f"to run a kernel: {ctx.command_path} run {word} ..."
        else:
            hint = f"there are: {', '.join(shown)}"
        raise UserError(f"no such command {word!r}; {hint}")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed output pipe ends it silently."""
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
    """Print a likely mistake that does not prevent the command."""
    click.echo(f"warning: {message}", err=True)


def _fail(message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(CANNOT_RUN)


def _shortened(log: str) -> str:
    """Return the first errors of a compiler's log; later ones mostly follow from these."""
    lines = log.splitlines()
    if len(lines) <= _LOG:
        return log
    remarks = [line for line in lines[_LOG:] if line.startswith("(")]  # which headers are missing
    return "\n".join([*lines[:_LOG], f"... and {len(lines) - _LOG} more lines", *remarks])


def _usage(error: click.ClickException) -> str:
    """Return a usage error in one line, with a pointer to the help."""
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if context else message

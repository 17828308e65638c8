"""The group of commands: imported one by one, listed by intent, with errors in one line."""

import difflib
import errno
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from ...text.width import columns, has_colour
from ..errors import CANNOT_RUN, DISCARDED, INTERRUPTED, PIPE_CLOSED, UserError
from .commands import ENTRIES, EXIT_CODES, MENU
from .option_groups import heading

_LOG = 24
"""Lines of a compiler's log that are shown."""


class CommandGroup(click.Group):
    """Group of commands whose modules are imported when they are used."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command line and exit with its code."""
        extra["standalone_mode"] = False  # errors come here, not to click's own report
        extra.setdefault("terminal_width", columns())  # click's own least is 50
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed, as by >&-: the exit code is worth having
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        try:
            code = super().main(*args, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(CANNOT_RUN)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except click.ClickException as error:
            _fail(_usage(error))
        except UserError as error:
            _fail(str(error))
        except MemoryError as error:
            _fail(f"not enough memory: {error}" if str(error) else "not enough memory")
        except OSError as error:
            where = error.filename or "cannot write"
            _fail(f"{where}: {error.strerror}" if error.strerror else str(error))
        except Exception as error:
            from kernels.errors import KernelError, SimulatorError

            if isinstance(error, KernelError):
                _fail(_shortened(str(error)))
            if isinstance(error, SimulatorError):
                _fail(str(error))
            raise
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the menu."""
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"tilescope.usage.{entry.module}")
        command: click.Command = getattr(module, f"{entry.module}_command")
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)
        with formatter.section(heading("Exit codes")):
            formatter.write_dl(EXIT_CODES)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under what they are for, and import none of them."""
        for title, entries in MENU.items():
            with formatter.section(heading(title)):
                formatter.write_dl([(e.name, e.summary) for e in entries if not e.hidden])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word; suggests similar ones if it is unknown.

        A file instead of a command is described, with commands for it.
        """
        word = args[0]
        if word in ENTRIES or word.startswith("-"):
            return super().resolve_command(ctx, args)
        if len(args) == 1 and Path(word).is_file():
            return "help", self.get_command(ctx, "help"), args
        if Path(word).is_file() and (option := self._unknown_option(ctx, args[1:])):
            from kernels.source_access import plain_name

            said = f"no such option {option}; what the file holds: {ctx.command_path} {word}"
            raise UserError(plain_name(said))
        shown = [name for name, entry in ENTRIES.items() if not entry.hidden]
        near = difflib.get_close_matches(word, shown, n=1)
        if near:
            hint = f"did you mean {near[0]}?"
        elif Path(word).suffix in (".cu", ".ptx", ".py", ".toml") and not Path(word).exists():
            from kernels.source_access import missing

            raise UserError(missing(Path(word)))
        elif len(args) > 1 or "." in word or "_" in word:
            hint = f"to run a kernel: {ctx.command_path} run {word} ..."
        else:
            hint = f"there are: {', '.join(shown)}"
        raise UserError(f"no such command {word!r}; {hint}")

    def _unknown_option(self, ctx: click.Context, words: Sequence[str]) -> str:
        """Return the first option that no command which runs a kernel takes; empty if none."""
        taken = [self.get_command(ctx, name) for name in ("run", "check", "view", "predict")]
        known = {
            o for one in taken if one for p in one.params for o in (*p.opts, *p.secondary_opts)
        }
        for word in words:
            option = word.partition("=")[0]
            if option in ("-h", "--help") or not re.match(r"--?[A-Za-z]", option):
                continue
            if option not in known and (option.startswith("--") or option[:2] not in known):
                return option
        return ""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed output pipe ends it silently."""
        from kernels.errors import ArgumentWarning

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ArgumentWarning)  # reported once, when it is read
                code = _invoked(super().invoke, ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # What is still buffered goes nowhere, rather than to a second error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return PIPE_CLOSED
        return PIPE_CLOSED if not code and ctx.meta.get(DISCARDED) else code


def _invoked(invoke: Callable[[click.Context], Any], ctx: click.Context) -> Any:
    """Return a command's exit code, by whichever way it ends."""
    try:
        return invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code


def _fail(message: str) -> NoReturn:
    from ...text.colour import painted

    text = f"error: {message}"
    click.echo(painted(text) if has_colour(sys.stderr) else text, err=True)
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

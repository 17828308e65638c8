"""Options of a command under titles, by subject."""

import click

from ...text.width import has_colour

GROUPS = {
    "This command": (),
    "What is launched": (
        "size", "tile", "launch", "grid", "block", "shared", "symbol", "cooperative", "cluster",
        "stack", "heap", "seed",
    ),
    "How it is compiled": ("arch", "build", "D", "I", "option"),
    "The right result": ("expect", "reference", "close"),
    "How it is run": (
        "schedule", "step-limit", "engine", "checks", "kernel", "max-launches", "sample", "device",
        "jit-level",
    ),
    "What counts as an error": (
        "equal-writes", "warp-synchronous", "fail-on", "baseline", "write-baseline", "allow-none",
    ),
    "Output": (
        "explain", "max", "json", "sarif", "junit", "svg", "plot", "output", "open", "quiet",
        "help",
    ),
}  # fmt: skip
"""Titles, and long names of options; all others are the command's own."""
_FEW = 6
"""Options that need no titles."""
_TITLE_OF = {name: title for title, names in GROUPS.items() for name in names}


class GroupedCommand(click.Command):
    """Command whose help lists its options under titles."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, grouped; a command with few options has one title."""
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in GROUPS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                records[_title(parameter)].append(record)
        rows = [row for those in records.values() for row in those]
        for title, those in records.items() if len(rows) > _FEW else [("Options", rows)]:
            if those:
                with formatter.section(heading(title)):
                    formatter.write_dl(those)


def heading(text: str) -> str:
    """Return a title of a help text, in colour on a terminal."""
    return click.style(text, fg="cyan", bold=True) if has_colour() else text


def _title(parameter: click.Parameter) -> str:
    names = [option.lstrip("-") for option in parameter.opts]
    return next((_TITLE_OF[name] for name in names if name in _TITLE_OF), "This command")

"""``tilescope help``: commands, kinds of hazards, words of the reports, and what a file holds."""

import difflib
from pathlib import Path

import click

from ..cli.errors import UserError
from ..cli.menu.commands import ENTRIES


def help_command(ctx: click.Context, topic: tuple[str, ...]) -> None:
    """Run ``tilescope help``; ``tilescope.usage`` has its options."""
    parent = ctx.parent or ctx
    asked = " ".join(topic)
    if not topic:
        click.echo(parent.get_help())
    elif asked in ENTRIES and isinstance(parent.command, click.Group):
        command = parent.command.get_command(parent, asked)
        assert command is not None
        inner = click.Context(
            command, info_name=asked, parent=parent, terminal_width=parent.terminal_width
        )
        click.echo(command.get_help(inner))
    else:
        _explain(asked)


def _explain(asked: str) -> None:
    """Explain a kind of hazard, a word of the reports, or a file."""
    from simulator.hazards.kinds import KINDS

    from ..cli.menu.found_file import described
    from ..text.layout import wrapped
    from ..text.words import WORDS, meaning

    word = asked.lower()
    if word in KINDS:
        kind = KINDS[word]
        click.echo(wrapped(f"{kind.name}, {kind.severity}: {kind.title}."))
        click.echo(wrapped(kind.help))
    elif word in WORDS:
        click.echo(meaning(word))
    elif Path(asked).is_file():
        click.echo(described(asked))
    else:
        known = [*(name for name in ENTRIES if name[0] != "_"), *KINDS, *WORDS]
        near = difflib.get_close_matches(word, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "it has commands, hazards, words"
        raise UserError(f"no help on {asked!r}; {hint}")

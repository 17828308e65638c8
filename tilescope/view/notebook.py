"""The page inline in a notebook."""

from __future__ import annotations

import html
from pathlib import Path

from simulator import Run

from .page import Story, page

_HEIGHT = 920


class Shown:
    """A run's page: notebooks draw it, ``save`` writes it to a file."""

    def __init__(self, content: str) -> None:
        self.content = content

    def save(self, file: str | Path) -> Path:
        """Write the page to a file that any browser opens."""
        path = Path(file)
        path.write_text(self.content, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """What Jupyter draws: the page in a frame of its own."""
        text = html.escape(self.content)
        return (
            f'<iframe srcdoc="{text}" title="tilescope" '
            f'style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {len(self.content):,} characters; .save(file) writes it>"


def show(*runs: Run) -> Shown:
    """The page of one run, or of several beside each other.

    Raises:
        NoTrace: A run was launched without ``trace=True``.
    """
    return Shown(page([Story(run) for run in runs]))

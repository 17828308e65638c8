"""Colour of reports on a terminal: words that carry a verdict, and the lines of a diff."""

import re

import click

_STYLES = (
    (re.compile(r"^(\s*)(error)(?=:)", re.M), {"fg": "red", "bold": True}),
    (re.compile(r"^(\s*)(warning)(?=:)", re.M), {"fg": "yellow", "bold": True}),
    (re.compile(r"^(\s*)(note)(?=:)", re.M), {"fg": "cyan"}),
    (re.compile(r"^(\s+)(fix)(?=  )", re.M), {"fg": "green", "bold": True}),
    (re.compile(r"^(\s{8,})(\+(?!\+).*)$", re.M), {"fg": "green"}),
    (re.compile(r"^(\s{8,})(-(?!-).*)$", re.M), {"fg": "red"}),
    (re.compile(r"()(\bverified\b(?=[ ,:]))"), {"fg": "green"}),
    (re.compile(r"^((?:verdict: )?)(no hazards)\b", re.M), {"fg": "green", "bold": True}),
    (re.compile(r"()(\b(?:is WRONG|not checked)\b)"), {"fg": "red", "bold": True}),
    (re.compile(r"^()(\d+ errors?\b)(?=.* in )", re.M), {"fg": "red", "bold": True}),
)  # fmt: skip


def painted(text: str) -> str:
    """Return a report with escape sequences for a terminal; its characters stay the same."""
    for pattern, style in _STYLES:
        text = pattern.sub(lambda m, s=style: m[1] + click.style(m[2], **s), text)  # type: ignore
    return text

"""Files that commands write."""

import json
from pathlib import Path
from typing import Any

import click


def write_json(file: str, content: dict[str, Any]) -> None:
    """Write JSON to a file, or to standard output where the file is ``-``."""
    write_text(file, json.dumps(content, indent=2) + "\n")


def write_text(file: str, text: str) -> None:
    """Write a text that ends its lines, likewise; names that are no text as escapes."""
    if file == "-":
        click.echo(text, nl=False)
    else:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")

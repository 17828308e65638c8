"""Files that commands write."""

import json
from pathlib import Path
from typing import Any

import click


def write_json(file: str, content: dict[str, Any]) -> None:
    """Write JSON to a file, or to standard output where the file is ``-``."""
    text = json.dumps(content, indent=2)
    if file == "-":
        click.echo(text)
    else:
        Path(file).write_text(text + "\n", encoding="utf-8")

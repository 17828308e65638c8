"""Where the text of an inline extension stands in the script: ``#line`` directives say so."""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

_LARGEST = 1 << 22
"""Bytes of a script that is searched."""


def with_line(text: str) -> str:
    """Return a source with a ``#line`` directive for where it is a literal of the user's code.

    The files searched are those of the running functions, the innermost first. Text that is put
    together at run time, or whose literal has escapes for line ends, stays as it is.
    """
    for file in _running_files():
        line = _literals(file).get(text)
        if line is not None:
            return f'#line {line} "{_quoted(file)}"\n{text}'
    return text


def _running_files() -> Iterator[str]:
    frame = sys._getframe(1)
    files: dict[str, None] = {}
    while frame is not None:
        files[frame.f_code.co_filename] = None
        frame = frame.f_back  # type: ignore[assignment]
    own = Path(__file__).parents[1]
    for file in files:
        path = Path(file).resolve()
        is_printable = str(path).isprintable()
        if is_printable and own not in path.parents and path.suffix == ".py" and path.is_file():
            yield str(path)


@functools.lru_cache(maxsize=64)
def _literals(file: str) -> dict[str, int]:
    """Return the first line of each literal of several lines, by its text."""
    path = Path(file)
    if path.stat().st_size > _LARGEST:
        return {}
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if node.value.count("\n") == (node.end_lineno or 0) - node.lineno > 0:
            found.setdefault(node.value, node.lineno)
    return found


def _quoted(file: str) -> str:
    return file.replace("\\", "\\\\").replace('"', '\\"')

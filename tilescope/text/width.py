"""Width and colour of a terminal; imports nothing of the simulator, as ``--help`` is quick."""

import os
import shutil
import sys
from typing import IO

_MAX_COLUMNS, _MIN_COLUMNS = 80, 32


def columns() -> int:
    """Return the width of reports: that of the terminal, at most 80."""
    return max(
        _MIN_COLUMNS, min(_MAX_COLUMNS, shutil.get_terminal_size((_MAX_COLUMNS, 24)).columns)
    )


def has_colour(stream: IO[str] | None = None) -> bool:
    """Whether a stream (by default standard output) is a terminal that shows colour.

    A pipe, a file, ``NO_COLOR`` (https://no-color.org) and ``TERM=dumb`` have none.
    """
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or stream is None:
        return False
    return stream.isatty()

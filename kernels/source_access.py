"""Source files that a PTX text names: which of them may be read, and how much of them.

The names come from the PTX (``.file``), which may be anybody's: what is read ends in reports
and pages. See ``docs/security.md``.
"""

import codecs
import itertools
import os
import re
import stat
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from .errors import KernelError

LIMIT = 4 << 20
"""Bytes of a source file at most; a longer one is not shown."""
_LARGEST = 1 << 28
_MAX_NAMES = 4096
"""Names of a folder that are compared with a missing one."""

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def plain(text: str) -> str:
    """Return the text without what changes how a terminal shows the rest: control characters.

    Tabs and line feeds stay.
    """
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_name(text: str) -> str:
    """Escape text for use within a line: without tabs and line feeds."""
    return plain(text).translate(dict.fromkeys(map(ord, "\t\n"), "\N{REPLACEMENT CHARACTER}"))


def source_text(path: Path) -> str:
    """Return the text of a file named by the user, CUDA C++ or PTX, without a UTF-8 mark.

    Raises:
        KernelError: It is no regular file, cannot be read, is too large or in UTF-16;
            ``FileNotFoundError``: there is none.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
            raise KernelError(f"cannot read {str(path)!r}: not a regular file")
        if about.st_size > _LARGEST:
            raise KernelError(f"cannot read {str(path)!r}: {about.st_size:,} bytes are too many")
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(missing(path)) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise KernelError(f"cannot read {str(path)!r}: {why}") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise KernelError(f"{path} is UTF-16: save it as UTF-8")
    text = content.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def missing(path: Path) -> str:
    """Return the message for a file that does not exist, with similar names of its folder."""
    try:
        names = list(itertools.islice((one.name for one in os.scandir(path.parent)), _MAX_NAMES))
    except (OSError, ValueError):  # no folder either
        names = []
    similar = get_close_matches(path.name, names, cutoff=0.7)  # suffixes alone are half alike
    near = [repr(str(path.parent / name)) for name in similar]
    return f"no file {str(path)!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def read_below(file: str, folders: Sequence[Path]) -> str | None:
    """Return the text of a regular file below one of some folders, links followed first.

    Returns:
        ``None`` for anything else: a file elsewhere, a device, a pipe, more than ``LIMIT``.
    """
    for start in dict.fromkeys([*folders, Path.cwd()]):
        try:
            path = (start / file).resolve(strict=True)
            if any(path.is_relative_to(folder.resolve()) for folder in folders):
                return _read(path)
        except (OSError, ValueError, RuntimeError):  # not there, no name at all, links in a circle
            continue
    return None


def _read(path: Path) -> str | None:
    # Opened without waiting for a pipe's other end, and looked at through what was opened.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags), "rb") as opened:
        about = os.fstat(opened.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > LIMIT:
            return None
        content = opened.read(LIMIT + 1)
    return content.decode("utf-8", "replace") if len(content) <= LIMIT else None


def beneath(path: str, folder: str) -> str | None:
    """Return a path from a folder that it is in, both absolute; ``None``: it is not.

    (``pathlib`` takes 0.2 s for a name of 5,000 folders, from Python 3.12 on.)
    """
    inside = os.path.normcase(path).startswith(os.path.normcase(folder).rstrip(os.sep) + os.sep)
    return path[len(folder.rstrip(os.sep)) + 1 :] if inside else None


def display_path(file: str) -> str:
    """Return a path below the working folder from there; a library source from ``kernels/``."""
    library = str(Path(__file__).resolve().parent)
    path = os.path.abspath(file) if file else ""
    inside = beneath(path, library)
    if inside is not None:
        return os.path.join(os.path.basename(library), inside)
    inside = beneath(path, os.getcwd())
    return file if inside is None else inside

"""Fixes as edits of files: one diff, or written if the files are unchanged."""

import contextlib
import linecache
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from kernels.compiler.toolkit import short_path
from kernels.source.source_edit import Edit, applied, diff
from simulator import Hazard

from ..cli.errors import UserError


def edits(hazards: Iterable[Hazard]) -> dict[Path, list[Edit]]:
    """Return the edits of all fixes, each once, by file."""
    found: dict[Path, list[Edit]] = {}
    for hazard in hazards:
        edit = hazard.fix.edit if hazard.fix else None
        if edit is not None and edit not in found.setdefault(edit.file, []):
            found[edit.file].append(edit)
    return found


def as_diff(hazards: Iterable[Hazard]) -> bytes:
    """Return one unified diff, in the files' own encodings."""
    return b"".join(
        diff(several[0].content, several, short_path(str(file)))
        for file, several in edits(hazards).items()
    )


def write(hazards: Iterable[Hazard]) -> list[Path]:
    """Write the edits of all fixes to their files, all or none; return the files.

    Raises:
        UserError: A file has changed since the check, or cannot be written.
    """
    found = edits(hazards)
    for file, several in found.items():
        name = short_path(str(file))
        try:
            now = file.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {name}: {error.strerror}; nothing written") from None
        if now != several[0].content:
            raise UserError(f"{name} has changed since it was read; nothing written")
        if not os.access(file, os.W_OK):
            raise UserError(f"{name} cannot be written; nothing written")
    for file, several in found.items():
        _replace(file, applied(several[0].content, several))
        linecache.checkcache(str(file))  # a further run in this process shows its lines
    return list(found)


def _replace(file: Path, content: bytes) -> None:
    """Replace a file's content atomically."""
    try:
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    except OSError as error:
        raise UserError(f"cannot write beside {file}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
        shutil.copymode(file, name)
        os.replace(name, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise UserError(f"cannot write {short_path(str(file))}: {error.strerror}") from None

"""What people touch: the command line and its reports."""

from importlib import metadata
from typing import Any

__all__ = ["Session", "session", "version"]


def version() -> str:
    """The installed version; 0 where this runs from its sources."""
    try:
        return metadata.version("tilescope")
    except metadata.PackageNotFoundError:
        return "0"


def __getattr__(name: str) -> Any:
    """``session`` and ``Session``, imported when they are asked for."""
    if name in ("session", "Session"):
        from . import recording

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

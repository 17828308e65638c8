"""What people touch: the command line and its reports."""

from typing import Any

from .release import version

__all__ = ["Session", "session", "version"]


def __getattr__(name: str) -> Any:
    """``session`` and ``Session``, imported when they are asked for."""
    if name in ("session", "Session"):
        from .sessions import recording

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

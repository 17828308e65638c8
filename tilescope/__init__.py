"""Command line and reports of the simulator, and sessions of several launches."""

from typing import Any

from .release import version

__all__ = ["Session", "session", "version"]


def __getattr__(name: str) -> Any:
    """Import ``session`` and ``Session`` on demand."""
    if name in ("session", "Session"):
        from .sessions import recording

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

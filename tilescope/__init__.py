"""Everything in one import: ``import tilescope as ts``; reports, and sessions of several launches.

Names are imported when they are used.
"""

import importlib
from typing import Any

from .release import version

_PLACES = {
    "kernels": ("Kernel", "Pointer", "Surface", "TensorMap", "Texture", "unset"),
    "simulator": ("Device", "Hazard", "Prediction", "Run", "launch", "predict"),
    "tilescope.sessions.recording": ("Session", "session"),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [  # noqa: RUF022 - the order of use
    "Kernel", "launch", "check", "predict", "session", "Run", "Hazard", "Prediction", "Session",
    "Device", "Pointer", "Surface", "TensorMap", "Texture", "unset", "version",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name on demand; ``check`` is the package of that name, which can be called."""
    if name == "check":
        return importlib.import_module("tilescope.check")
    if name in _PLACE_OF:
        return getattr(importlib.import_module(_PLACE_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

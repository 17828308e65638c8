"""Names of GPU architectures."""

import re

from ..errors import KernelError

KNOWN = (70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
_NAME = re.compile(r"(?:(?:sm|compute)_)?([0-9]{2,3})([af]?)")


class UnknownArchitecture(KernelError, ValueError):
    """No GPU has an architecture of that name."""


def architecture(name: str | int) -> int:
    """Return an architecture's number: 90 for ``90``, ``"90a"``, ``"sm_90a"``, ``"compute_90"``.

    Raises:
        ValueError: There is none of that name.
    """
    return int(_parts(name)[0])


def virtual(name: str | int) -> str:
    """Return NVRTC's name of a PTX target: ``compute_90``, ``compute_90a``.

    Raises:
        ValueError: There is no such architecture.
    """
    return "compute_" + "".join(_parts(name))


def _parts(name: str | int) -> tuple[str, str]:
    found = _NAME.fullmatch(str(name))
    if isinstance(name, bool) or not found or int(found[1]) not in KNOWN:
        known = ", ".join(str(number) for number in KNOWN)
        raise UnknownArchitecture(f"arch: {name!r} is no architecture known here ({known})")
    return found[1], found[2]

"""Which versions of the front ends were tested."""

import warnings

TESTED = {"numba-cuda": "0.30", "Triton": "3.9", "cuda-core": "1.2"}


def warn_of(name: str, version: str) -> None:
    """Warn of a version of a front end that was not tested."""
    tested = TESTED[name]
    if not version.startswith(f"{tested}."):
        warnings.warn(f"{name} {version}; what was tested is {tested}", stacklevel=4)

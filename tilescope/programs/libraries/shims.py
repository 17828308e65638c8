"""Stand-ins for the libraries that a program is linked with: which, and what they export."""

import functools
from collections.abc import Sequence
from pathlib import Path

from ..shim.build import VERSIONS, exports, library_shim

LIBRARIES = {"libcublas.so": "cublas", "libcurand.so": "curand", "libcufft.so": "cufft",
             "libcusparse.so": "cusparse", "libcuda.so": "cuda",
             "libcublasLt.so": "cublaslt"}  # fmt: skip
"""File of each library's exported names, by its name without a version."""
CURRENT = ("libcublas.so.13", "libcurand.so.10", "libcufft.so.12", "libcusparse.so.12",
           "libcuda.so.1", "libcublasLt.so.13")  # fmt: skip
"""Of CUDA 13, and the driver."""
_EXPORTS = Path(__file__).parent / "exports"


@functools.cache
def _names(library: str) -> tuple[str, ...]:
    return tuple((_EXPORTS / f"{library}.txt").read_text().split())


def library_exports() -> list[tuple[int, str]]:
    """Return the functions of all libraries, as ``exports`` those of the runtime before them."""
    return [(VERSIONS[0], name) for library in LIBRARIES.values() for name in _names(library)]


def library_stand_ins(needed: Sequence[str]) -> list[Path]:
    """Return the stand-ins for libraries by their sonames; others are left out.

    Raises:
        ShimError: They cannot be built here.
    """
    first, made = len(exports()), []
    for prefix, library in LIBRARIES.items():
        for soname in dict.fromkeys(needed):
            if soname.startswith(f"{prefix}."):
                made.append(library_shim(soname, _names(library), first))
        first += len(_names(library))
    return made

"""NVIDIA's headers: where they are, and which files belong to them."""

import functools
import os
import posixpath
import re
from importlib import metadata
from pathlib import Path

OWN_HEADERS = Path(__file__).parents[1] / "include"
"""Stand-ins for the C library headers that device code likes to include; looked at last."""

_WHEELS = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-curand")
_INSTALLED = re.compile(
    r"/cuda(-[\d.]+)?/(targets/[^/]+/)?include/|/nvidia/[^/]+/include/|^/usr/(local/)?include/"
    r"|/(site|dist)-packages/torch/include/"
)
"""Where toolkits and wheels (PyTorch's too) put headers, on whatever machine the PTX was made."""


@functools.cache
def toolkit_folders() -> tuple[Path, ...]:
    """Include folders of the CUDA header wheels that are installed, and of a toolkit behind them.

    The toolkit is where ``CUDA_HOME`` or ``CUDA_PATH`` says, or in ``/usr/local/cuda``.
    """
    found: dict[Path, None] = {}
    for wheel in _WHEELS:
        try:
            files = metadata.files(wheel) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            parts = file.parts
            if "include" in parts:
                root = Path(*parts[: parts.index("include") + 1])
                found[Path(str(metadata.distribution(wheel).locate_file(root)))] = None
                found[Path(str(metadata.distribution(wheel).locate_file(root / "cccl")))] = None
                break
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home:
            found |= dict.fromkeys((Path(home, "include"), Path(home, "include", "cccl")))
    return tuple(path for path in found if path.is_dir())


@functools.lru_cache(maxsize=1024)
def is_toolkit(file: str) -> bool:
    """Whether a source file is no user's: a header of a toolkit, or one of our stand-ins."""
    name = posixpath.normpath(file.replace("\\", "/"))  # nvcc says bin/../targets/...
    if _INSTALLED.search(name) or name.rpartition("/")[2].startswith("__nv_nvrtc_builtin"):
        return True
    path = os.path.abspath(file)
    return any(path.startswith(f"{folder}{os.sep}") for folder in (*toolkit_folders(), OWN_HEADERS))


def short_path(file: str) -> str:
    """Return a path below the working folder, from there; a toolkit's header as one includes it."""
    if is_toolkit(file):  # ``cooperative_groups/details/sync.h``
        return re.sub(r".*/(include/(cccl/)?|(?=__nv_nvrtc_builtin))", "", file.replace("\\", "/"))
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative

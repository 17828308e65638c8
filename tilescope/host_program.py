"""A CUDA program's own launches, as commands."""

import shlex
from pathlib import Path
from typing import Any

from kernels.host_launches import HostLaunch, host_launches
from kernels.signatures import kernel_names

from .failure import UserError

_CUDA = (".cu", ".cuh", ".cpp", ".cc", ".cxx")


def is_cuda(file: str) -> bool:
    """Whether a name is that of a CUDA C++ file."""
    return file.endswith(_CUDA)


def refuse_with_launches(file: str) -> None:
    """Say what could be run of a file: its kernels, and a command for each launch of its host code.

    Raises:
        UserError: With that; nothing is said where the file launches nothing.
    """
    launches = _launches(file)
    if not launches:
        return
    names = ", ".join(kernel_names(_text(file)))
    lines = [
        f"--grid is missing, or --launch N: which launch of {file}?",
        f"kernels: {names}",
        "launches in its host code, ? where a value is not known:",
    ]
    for number, launch in enumerate(launches, 1):
        lines.append(f"  {number}  line {launch.line}")
        lines.append(f"     tilescope run {_command(file, launch)}")
    raise UserError("\n".join(lines))


def host_launch(file: str, number: int) -> dict[str, Any]:
    """What a request has to ask for to make the Nth launch of a file's host code.

    Raises:
        UserError: There is none, or not all of it is known.
    """
    launches = _launches(file)
    if not 1 <= number <= len(launches):
        raise UserError(f"--launch {number}: {file} has {len(launches)} launches")
    launch = launches[number - 1]
    if not launch.known:
        raise UserError(
            f"--launch {number}: not all of it is known (?): tilescope run {_command(file, launch)}"
        )
    grid, block = (",".join(map(str, shape or ())) for shape in (launch.grid, launch.block))
    words = (launch.kernel, *(arg or "" for arg in launch.args))
    return {"words": words, "grid": grid, "block": block, "shared": launch.shared_bytes or 0}


def _launches(file: str) -> list[HostLaunch]:
    return host_launches(_text(file)) if is_cuda(file) and Path(file).is_file() else []


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8", errors="replace")


def _command(file: str, launch: HostLaunch) -> str:
    words = launch.words(file)
    return " ".join(word if word == "?" else shlex.quote(word) for word in words)

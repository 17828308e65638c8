"""A CUDA program's own launches, as commands."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernels.headers import follow
from kernels.host_launches import HostLaunch, host_launches
from kernels.signatures import kernel_names

from .failure import UserError

_MOST_CHARACTERS = 1 << 20
_CUDA = (".cu", ".cuh", ".cpp", ".cc", ".cxx")


def is_cuda(file: str) -> bool:
    """Whether a name is that of a CUDA C++ file."""
    return file.endswith(_CUDA)


def refuse_with_launches(file: str, options: Sequence[str]) -> None:
    """Say what could be run of a file: its kernels, and a command for each launch of its host code.

    Raises:
        UserError: With that; nothing is said where the file launches nothing.
    """
    launches = _launches(file, options)
    if not launches:
        return
    texts = (_text(file), *_headers(file, options))
    names = ", ".join(dict.fromkeys(name for text in texts for name in kernel_names(text)))
    lines = [
        f"--grid is missing, or --launch N: which launch of {file}?",
        f"kernels: {names or 'none found'}",
        "launches in its host code, ? where a value is not known:",
    ]
    for number, launch in enumerate(launches, 1):
        lines.append(f"  {number}  line {launch.line}")
        lines.append(f"     tilescope run {_command(file, launch, options)}")
    raise UserError("\n".join(lines))


def host_launch(file: str, number: int, options: Sequence[str]) -> dict[str, Any]:
    """What a request has to ask for to make the Nth launch of a file's host code.

    Raises:
        UserError: There is none, or not all of it is known.
    """
    launches = _launches(file, options)
    if not 1 <= number <= len(launches):
        raise UserError(f"--launch {number}: {file} has {len(launches)} launches")
    launch = launches[number - 1]
    if not launch.known:
        raise UserError(
            f"--launch {number}: not all of it is known (?): "
            f"tilescope run {_command(file, launch, options)}"
        )
    grid, block = (",".join(map(str, shape or ())) for shape in (launch.grid, launch.block))
    words = (launch.kernel, *(arg or "" for arg in launch.args))
    return {"words": words, "grid": grid, "block": block, "shared": launch.shared_bytes or 0}


def _launches(file: str, options: Sequence[str]) -> list[HostLaunch]:
    if not is_cuda(file) or not Path(file).is_file():
        return []
    return host_launches(_text(file), "\n".join(_headers(file, options)), options)


def _headers(file: str, options: Sequence[str]) -> list[str]:
    """The user's headers that a file includes; none where they are a library."""
    found = list(follow(_text(file), Path(file).parent.resolve(), options).texts.values())
    return found[::-1] if sum(map(len, found)) <= _MOST_CHARACTERS else []


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8", errors="replace")


def _command(file: str, launch: HostLaunch, options: Sequence[str]) -> str:
    given = (o if o.startswith(("-D", "-I")) else f"--option={o}" for o in options)
    words = [*launch.words(file), *given]
    return " ".join(word if word == "?" else shlex.quote(word) for word in words)

"""A CUDA program's own launches, as commands."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path

from kernels.headers import follow
from kernels.host_launches import HostLaunch, host_launches, unread_launches
from kernels.host_words import overload
from kernels.reading import source_text
from kernels.signatures import kernel_names, signatures

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
    others = unread_launches(_text(file)) if is_cuda(file) and Path(file).is_file() else []
    if not launches and not others:
        return
    texts = (_text(file), *_headers(file, options))
    names = ", ".join(dict.fromkeys(name for text in texts for name in kernel_names(text)))
    lines = [
        f"--grid is missing, or --launch N: which launch of {file}?",
        f"kernels: {names or 'none found'}",
        "launches in its host code; words behind --launch N stand for each ? in turn:",
    ]
    for number, launch in enumerate(launches, 1):
        lines.append(f"  {number}  line {launch.line}")
        lines.append(f"     tilescope run {command(file, launch, options)}")
    lines += [f"  not read: line {line}, {called}" for line, called in others]
    raise UserError("\n".join(lines))


def host_launch(file: str, number: int, options: Sequence[str]) -> HostLaunch:
    """The Nth launch of a file's host code.

    Raises:
        UserError: There is none; FileNotFoundError: there is no file.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f"no file {file!r}")
    launches = _launches(file, options)
    if not 1 <= number <= len(launches):
        many = f"{len(launches) or 'no'} launch{'es' * (len(launches) != 1)}"
        raise UserError(f"--launch {number}: {file} has {many} in its host code")
    return launches[number - 1]


def _launches(file: str, options: Sequence[str]) -> list[HostLaunch]:
    if not is_cuda(file) or not Path(file).is_file():
        return []
    text, headers = _text(file), "\n".join(_headers(file, options))
    declared = [*signatures(text), *signatures(headers)]
    return [
        dataclasses.replace(launch, kernel=overload(launch.kernel, launch.args, declared))
        for launch in host_launches(text, headers, options)
    ]


def _headers(file: str, options: Sequence[str]) -> list[str]:
    """The user's headers that a file includes; none where they are a library."""
    found = list(follow(_text(file), Path(file).parent.resolve(), options).texts.values())
    return found[::-1] if sum(map(len, found)) <= _MOST_CHARACTERS else []


def _text(file: str) -> str:
    return source_text(Path(file))


def command(file: str, launch: HostLaunch, options: Sequence[str]) -> str:
    """The command line that makes a launch, ``?`` for what is not known."""
    given = (o if o.startswith(("-D", "-I")) else f"--option={o}" for o in options)
    words = [*launch.words(file), *given]
    return " ".join(word if word == "?" else shlex.quote(word) for word in words)

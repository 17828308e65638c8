"""Launches in a CUDA program's host code, as commands."""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from kernels.compiler.headers import follow
from kernels.host.host_launches import HostLaunch, host_launches, unread_launches
from kernels.source.preprocessor import directives
from kernels.source.signatures import kernel_names, parted
from kernels.source_access import missing, plain_name, source_text

from ..text.launches import command, error_text, listing, place
from .errors import UserError

_MAX_CHARACTERS = 1 << 20
_CUDA = (".cu", ".cuh", ".cpp", ".cc", ".cxx")


def is_cuda(file: str) -> bool:
    """Whether a file name is that of CUDA C++."""
    return file.endswith(_CUDA)


def has_main(text: str) -> bool:
    """Whether a source defines a program."""
    return re.search(r"\bmain\s*\([^;{]*\)\s*\{", text) is not None


def whole_program(file: str) -> list[str]:
    """Return the command that runs the whole program of a source, if it defines one."""
    if not file.endswith(".cu") or not has_main(source_text(Path(file))):
        return []
    return ["or the whole program, with its own data:", *command([file], "  ", "exec")]


def refuse_with_launches(file: str, options: Sequence[str]) -> None:
    """Explain what can be run of a file: its kernels, and a command for each launch.

    Raises:
        UserError: With this text, if the file contains launches.
    """
    if not is_cuda(file) or not Path(file).is_file():
        return
    launches, others = launches_of(file, options)
    if launches or others:
        names = kernels_of(file, options)
        listed = listing(file, launches, others, names, options)
        raise UserError("\n".join([listed, *whole_program(file)]))


def refuse_unknown_kernel(file: str, options: Sequence[str], entry: str) -> None:
    """Reject the name of a kernel that a file neither defines nor launches.

    Raises:
        UserError: There is none of that name, and no macro can define it.
    """
    if not entry or not Path(file).is_file():
        return
    known = kernels_of(file, options)
    texts = [source_text(Path(file)), *headers_of(file, options).values()]
    by_macro = any("__global__" in t[start:end] for t in texts for start, end in directives(t))
    launched = (one.kernel for one in launches_of(file, options)[0])
    names = {plain_entry(name) for name in (*known, *launched)}
    if not known or by_macro or plain_entry(entry) in names:
        return
    near = difflib.get_close_matches(plain_entry(entry), sorted(names - {"?"}), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    raise UserError(error_text(plain_name(f"no kernel {entry!r} in {file}; {hint}")))


def launches_of(
    file: str, options: Sequence[str]
) -> tuple[list[HostLaunch], list[tuple[str, int, str]]]:
    """Return the launches of a file's host code, and places of unsupported ones."""
    text, headers = source_text(Path(file)), headers_of(file, options)
    return host_launches(text, headers, options), unread_launches(text, headers, options)


def single_launch(file: str, options: Sequence[str], kernel: str = "") -> int:
    """Return the number of the only launch (of ``kernel``, if given); 0: none, or several."""
    if not is_cuda(file) or not Path(file).is_file():
        return 0
    launches, others = launches_of(file, options)
    base = plain_entry(kernel)
    fitting = [
        (n, one) for n, one in enumerate(launches, 1)
        if not kernel or plain_entry(one.kernel) in (base, "?")
    ]  # fmt: skip
    if len(fitting) != 1 or others:
        return 0
    return fitting[0][0]


def plain_entry(entry: str) -> str:
    """Return a kernel's name without namespaces, template arguments and types."""
    return re.sub(r"<.*", "", parted(entry)[0], flags=re.S).split("::")[-1].strip()


def host_launch(file: str, number: int, options: Sequence[str]) -> HostLaunch:
    """Return the Nth launch of a file's host code.

    Raises:
        UserError: There is no such launch.
        FileNotFoundError: There is no such file.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(missing(Path(file)))
    sources = (source_text(Path(file)), headers_of(file, options)) if is_cuda(file) else ("", {})
    launches = host_launches(*sources, options)
    if not 1 <= number <= len(launches):
        many = f"{len(launches) or 'no'} launch{'es' * (len(launches) != 1)}"
        others = unread_launches(*sources, options)
        unread = "".join(f"; not read: {place(f, line)}, {called}" for f, line, called in others)
        raise UserError(
            error_text(f"--launch {number}: {file} has {many} in its host code{unread}")
        )
    return launches[number - 1]


def headers_of(file: str, options: Sequence[str]) -> dict[str, str]:
    """Return the user's headers that a file includes, by path relative to its folder.

    Headers of libraries are excluded.
    """
    folder = Path(file).parent.resolve()
    found = follow(source_text(Path(file)), folder, options).texts
    if sum(map(len, found.values())) > _MAX_CHARACTERS:
        return {}
    return {
        str(path.relative_to(folder) if path.is_relative_to(folder) else path): text
        for path, text in reversed(found.items())
    }


def kernels_of(file: str, options: Sequence[str]) -> list[str]:
    """Return the kernels of a file, then those of its headers."""
    texts = (source_text(Path(file)), *headers_of(file, options).values())
    return list(dict.fromkeys(name for text in texts for name in kernel_names(text)))

"""Launches proposed from a kernel's signature, where host code has none; sizes are guesses."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels import Kernel, KernelError
from kernels.compiler.process import CompilerCrash
from kernels.host.host_arguments import element_word
from kernels.source.element_types import spelled, vector_of
from kernels.source.signatures import Signature, signatures
from kernels.source_access import source_text

from ..text.launches import HANDLES, command, error_text
from .errors import UserError
from .host_program import headers_of, is_cuda, launches_of

_MAX_KERNELS = 4
_BLOCKS, _THREADS, _SIDE = 4, 256, 16
"""Blocks along an axis, threads of a block of one dimension, and along an axis of two."""
_SHARED = re.compile(r"__shared__\s[^;=\[]*\[\s*(\w+)")
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*(\w+)")


def declared(file: str, options: Sequence[str] = ()) -> list[Signature]:
    """Return the kernels that a CUDA C++ file and its headers declare."""
    texts = (source_text(Path(file)), *headers_of(file, options).values())
    return list(dict.fromkeys(one for text in texts for one in signatures(text)))


def proposed(file: str, signature: Signature, options: Sequence[str] = ()) -> list[str]:
    """Return the words of a command that launches a kernel; ``?`` for what is not guessed."""
    sources = {file: source_text(Path(file)), **headers_of(file, options)}
    body = _body(sources, signature.name)
    kinds = {one.name: one.example for one in signature.parameters if not one.pack}
    threads = _threads(body, sources, kinds)
    is_plane = re.search(r"\b(?:threadIdx|blockIdx)\s*\.\s*y\b", body) is not None
    if is_plane:
        side = threads if threads and threads <= 32 else _SIDE
        grid, block = f"{_BLOCKS},{_BLOCKS}", f"{side},{side}"
        count = str(_BLOCKS * side)
        extents = f"{count},{count}"
    else:
        grid, block = str(_BLOCKS), str(threads or _THREADS)
        count = extents = str(_BLOCKS * (threads or _THREADS))
    dynamic = re.search(r"\bextern\b[^;]*\b__shared__\b", body)
    words = [file, signature.example, "--grid", grid, "--block", block]
    words += ["--shared", "4096"] if dynamic else []
    for kind, _ in signature.params:
        for name, example in kinds.items():
            kind = re.sub(rf"\b{re.escape(name)}\b", example, kind)
        words.append(_word(kind, sources, count, extents))
    return words


def compile_first(file: str, options: Sequence[str]) -> None:
    """Compile a CUDA C++ file before anything else is asked of the user.

    A template is instantiated as a launch of the host code does, or with guessed arguments.

    Raises:
        KernelError: It does not compile.
    """
    kernels = declared(file, options) if is_cuda(file) and Path(file).is_file() else []
    if not kernels:
        return
    names = [one.full for one in kernels]
    plain = next((one for one in kernels if not one.template), None)
    if plain:
        types = ", ".join(kind for kind, _ in plain.params)
        entry = plain.full if names.count(plain.full) == 1 else f"{plain.full}({types})"
    else:
        launches, _ = launches_of(file, options)
        named = [one.kernel for one in launches if "<" in one.kernel and not one.lacking]
        entry = named[0] if named else kernels[0].example
    try:
        Kernel.from_cuda(Path(file), entry, options=options)
    except CompilerCrash:  # the other build may compile
        return
    except KernelError as error:
        raise KernelError(f"{error}\n(compiled: {entry})" if "<" in entry else str(error)) from None


def refuse_with_proposal(file: str, options: Sequence[str], entry: str = "") -> None:
    """Explain which launch could be typed.

    Raises:
        UserError: With this text, if the file declares a kernel (of the name ``entry``).
    """
    if not Path(file).is_file():
        return
    base = re.sub(r"<.*", "", entry, flags=re.S).split("::")[-1]
    kernels = [one for one in declared(file, options) if base in ("", one.name)]
    if not kernels:
        return
    head = (
        f"--grid is missing: {file} has no launch of it in host code. Proposed from the "
        "signature, with guessed sizes; nothing was run:"
    )
    lines = [error_text(head)]
    for signature in kernels[:_MAX_KERNELS]:
        lines += command(proposed(file, signature, options), "  ")
    if len(kernels) > _MAX_KERNELS:
        lines.append(f"  ... and {len(kernels) - _MAX_KERNELS} more kernels: tilescope list {file}")
    raise UserError("\n".join(lines))


def _word(kind: str, sources: Mapping[str, str], count: str, extents: str) -> str:
    """Return an argument for a parameter's type."""
    if handle := HANDLES.get(kind.removeprefix("const").strip()):
        return handle
    plain = spelled(kind, sources)
    element, is_pointer = plain.rstrip("*"), plain.endswith("*")
    element = element_word(vector_of(element)[0])
    if is_pointer:
        if plain.endswith("**"):
            return "?"
        init = "=normal" if element.startswith("f") or "bf" in element else "=arange"
        return f"{element}[{extents}]{init}" if element else f"u8[{extents}]=arange"
    if plain == "bool":
        return "1"
    return "1.5" if element.startswith("f") else count if element else "?"


def _threads(body: str, sources: Mapping[str, str], known: Mapping[str, str]) -> int:
    """Return a number of threads that shared arrays or launch bounds suggest; 0: none does.

    ``known``: template arguments by name.
    """
    found = []
    for word in _BOUNDS.findall(body) + _SHARED.findall(body):
        text = known.get(word, word)
        constant = rf"(?:#\s*define\s+{word}\s+|\b{word}\s*=\s*)(\d+)\b"
        values = [m for source in sources.values() for m in re.findall(constant, source)]
        text = values[0] if values and not text.isdecimal() else text
        found.append(int(text) if text.isdecimal() else 0)
    return next((n for n in found if 1 < n <= 1024), 0)


def _body(sources: Mapping[str, str], name: str) -> str:
    """Return a kernel's text: from its name to the next kernel."""
    for text in sources.values():
        found = re.search(rf"__global__[^;{{}}]*?\b{re.escape(name)}\s*\(.*?(?=__global__|\Z)",
                          text, re.S)  # fmt: skip
        if found:
            return found[0]
    return ""

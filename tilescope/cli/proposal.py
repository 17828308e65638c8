"""Launches proposed from a kernel's signature, where host code has none; sizes are guesses."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels import Kernel, KernelError
from kernels.compiler.process import CompilerCrash
from kernels.host.host_arguments import element_word
from kernels.source.array_shapes import constants, value_of
from kernels.source.element_types import spelled, vector_of
from kernels.source.signatures import Signature, signatures
from kernels.source.structures import layout_of
from kernels.source.thread_extents import MAX_THREADS, thread_extents
from kernels.source_access import plain_name, source_text

from ..text.launches import HANDLES, command, error_text, vector_word
from ..text.layout import fitted
from .errors import UserError
from .host_program import headers_of, is_cuda, launches_of, whole_program

_MAX_KERNELS = 4
_BLOCKS = 4
"""Blocks along an axis."""
_THREADS = {1: (256,), 2: (16, 16), 3: (8, 8, 4)}
"""Threads of a block along each axis, by the number of axes."""
_CONSTANT = re.compile(r"__constant__\s+([\w ]+?)\s+(\w+)\s*((?:\[[^\]]+\]\s*)*);")
_SHARED_BYTES = "4096"


@dataclass(frozen=True)
class Proposal:
    """A launch of a kernel.

    Attributes:
        words: Words of the command line; ``?`` for what is not guessed.
        guesses: What of it is guessed, for people.
        known: What the text says.
    """

    words: list[str]
    guesses: list[str]
    known: list[str]

    def remark(self) -> str:
        """Return which values are guesses."""
        known = f"; {' and '.join(self.known)} from the text" if self.known else ""
        return f"guessed: {', '.join(self.guesses)}{known}"


def declared(file: str, options: Sequence[str] = ()) -> list[Signature]:
    """Return the kernels that a CUDA C++ file and its headers declare."""
    texts = (source_text(Path(file)), *headers_of(file, options).values())
    return list(dict.fromkeys(one for text in texts for one in signatures(text)))


def proposed(file: str, signature: Signature, options: Sequence[str] = ()) -> Proposal:
    """Return a launch of a kernel, as far as its text determines one."""
    sources = {file: source_text(Path(file)), **headers_of(file, options)}
    body = _body(sources, signature.name)
    kinds = {one.name: one.example for one in signature.parameters if not one.pack}
    own = [name for _, name in signature.params]
    known = thread_extents(body, sources, signature.example, own)
    used = {
        index: [axis for axis in "xyz" if re.search(rf"\b{index}\s*\.\s*{axis}\b", body)]
        for index in ("threadIdx", "blockIdx")
    }
    block, grid = _block(used["threadIdx"], known.threads), _grid(used["blockIdx"])
    counts = [
        max(threads, known.elements.get(axis, 0)) * blocks
        for axis, threads, blocks in zip("xyz", block, grid, strict=True)
    ]
    words = [file, signature.example, "--grid", _shape(grid), "--block", _shape(block)]
    guesses = ["--grid"] * bool(used["blockIdx"])
    guesses += ["--block"] * bool(set(used["threadIdx"] or "x") - set(known.threads))
    if re.search(r"\bextern\b[^;]*\b__shared__\b", body):
        words += ["--shared", _SHARED_BYTES]
        guesses.append("--shared")
    types = []
    for kind, _ in signature.params:
        for name, example in kinds.items():
            kind = re.sub(rf"\b{re.escape(name)}\b", example, kind)
        types.append(spelled(kind, sources))
    numbers = [
        name for kind, name in zip(types, own, strict=True) if element_word(kind)[:1] in ("i", "u")
    ]
    extents = [count for count in reversed(counts) if count > 1] or [1]
    if len(extents) == 1 and any(_is_factor(name, body) for name in numbers):
        extents *= 2  # rows of so many elements
    for (raw, _), kind in zip(signature.params, types, strict=True):
        words.append(_word(raw, kind, extents, sources))
    for name, word in _constants(sources, body, signature.example):
        words += ["--symbol", f"{name}={word}"]
        guesses.append(name)
    guesses += [name or f"parameter {n}" for n, name in enumerate(own, 1)]
    return Proposal(words, guesses, ["--block"] * ("--block" not in guesses))


def _block(axes: Sequence[str], known: Mapping[str, int]) -> list[int]:
    """Return threads along x, y, z: those known, else usual ones, at most 1,024 altogether."""
    last = max(("xyz".index(axis) for axis in axes), default=0)
    usual = _THREADS[last + 1]
    sizes = [known.get(axis, usual[n] if n <= last else 1) for n, axis in enumerate("xyz")]
    while math.prod(sizes) > MAX_THREADS:
        free = [n for n, axis in enumerate("xyz") if axis not in known and sizes[n] > 1]
        if not free:
            return [*usual, 1, 1][:3]
        sizes[free[-1]] //= 2
    return sizes


def _grid(axes: Sequence[str]) -> list[int]:
    """Return blocks along x, y, z; a kernel without ``blockIdx`` is for a single block."""
    return [_BLOCKS if axis in axes else 1 for axis in "xyz"]


def _shape(sizes: Sequence[int]) -> str:
    """Return sizes as options have them, without trailing ones."""
    last = max((n for n, size in enumerate(sizes) if size > 1), default=0)
    return ",".join(map(str, sizes[: last + 1]))


def _is_factor(name: str, body: str) -> bool:
    """Whether a parameter is a factor, as in ``row * columns + column``."""
    word = re.escape(name)
    return bool(name and re.search(rf"\*\s*{word}\b|\b{word}\s*\*", body))


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
        f"--grid is missing: {file} has no launch of it in host code. Nothing was run; proposed "
        "from its text:"
    )
    lines = [error_text(head)]
    for signature in kernels[:_MAX_KERNELS]:
        one = proposed(file, signature, options)
        lines += [*command(one.words, "  "), fitted(f"    {plain_name(one.remark())}")]
    if len(kernels) > _MAX_KERNELS:
        lines.append(f"  ... and {len(kernels) - _MAX_KERNELS} more kernels: tilescope list {file}")
    lines += whole_program(file)
    raise UserError("\n".join(lines))


def _word(raw: str, plain: str, extents: Sequence[int], sources: Mapping[str, str]) -> str:
    """Return an argument for a parameter's type, as written and as it is spelled here."""
    if handle := HANDLES.get(raw.removeprefix("const").strip()):
        return handle
    if plain.endswith("**"):
        return "?"
    if plain.endswith("*"):
        return _array(plain, extents, sources)
    scalar, lanes = vector_of(plain)
    element = element_word(scalar)
    if plain == "bool":
        return "1"
    sizes = [str(size) for size in (*reversed(extents), 1, 1, 1)]
    values = ["1.5"] * lanes if element.startswith("f") else sizes[:lanes]
    return vector_word(values) if element else "?"


def _array(kind: str, extents: Sequence[int], sources: Mapping[str, str]) -> str:
    """Return an array of a type's elements; of bytes, if it is none of words."""
    scalar, lanes = vector_of(kind.rstrip("*"))
    element = element_word(scalar)
    if not element and (layout := layout_of(scalar, sources)):
        lanes = layout.nbytes
    shape = ",".join(map(str, (*extents, lanes) if lanes > 1 else extents))
    init = "normal" if element.startswith("f") else "arange"
    return f"{element or 'u8'}[{shape}]={init}"


def _constants(sources: Mapping[str, str], body: str, entry: str) -> Iterator[tuple[str, str]]:
    """Yield constants without an initial value that a kernel uses, and arrays for them."""
    for text in sources.values():
        names = dict(constants(text, entry))
        for kind, name, shape in _CONSTANT.findall(text):
            extents = [value_of(one, names) for one in re.findall(r"\[([^\]]+)\]", shape)] or [1]
            known = [one for one in extents if one]
            if re.search(rf"\b{name}\b", body) and len(known) == len(extents):
                yield name, _array(spelled(kind, sources), known, sources)


def _body(sources: Mapping[str, str], name: str) -> str:
    """Return a kernel's text: from its name to the next kernel."""
    for text in sources.values():
        found = re.search(rf"__global__[^;{{}}]*?\b{re.escape(name)}\s*\(.*?(?=__global__|\Z)",
                          text, re.S)  # fmt: skip
        if found:
            return found[0]
    return ""

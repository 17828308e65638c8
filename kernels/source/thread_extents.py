"""Threads of a block that a kernel's text assumes, along each axis.

Three forms tell: ``blockIdx.x * TILE + threadIdx.x``, loops of threads with a stride of their own
(``for (i = threadIdx.x; ...; i += THREADS)``), and shared arrays that ``threadIdx`` indexes. A
stride decides before the others: the 32 rows of a tile may be the work of 8 threads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from .array_shapes import constants, value_of

_TERM = r"(?<![\w.])(?P<term>\w+|\( [\w */+-]+ \))"
_BLOCKS = (
    rf"blockIdx\.(?P<axis>[xyz]) \* {_TERM} \+ threadIdx\.(?P=axis)",
    rf"{_TERM} \* blockIdx\.(?P<axis>[xyz]) \+ threadIdx\.(?P=axis)",
    rf"threadIdx\.(?P<axis>[xyz]) \+ blockIdx\.(?P=axis) \* {_TERM}",
    rf"threadIdx\.(?P<axis>[xyz]) \+ {_TERM} \* blockIdx\.(?P=axis)",
)
_LOOP = re.compile(
    rf"\bfor \( (?:\w+ )*(?P<name>\w+) = (?P<start>[^;]*);[^;]*; (?P=name) \+= {_TERM} \)"
)
_BOUNDS = re.compile(r"__launch_bounds__ \( (?P<term>[^,()]+)")
_SHARED = re.compile(r"__shared__ [^;=\[]*?(?P<name>\w+) (?P<extents>(?:\[ [^\]]+ \] ?)+)")
_HALO = r"\b{} \[ threadIdx\.[xyz] [+-]"
_ALIAS = re.compile(r"\b(\w+) = ((?:threadIdx|blockIdx)\.[xyz]) [;,]")
_FACTORS = re.compile(rf"blockIdx\.([xyz]) \* {_TERM.replace('?P<term>', '')}")
MAX_THREADS = 1024


@dataclass(frozen=True)
class Extents:
    """Extents of a block along ``x``, ``y``, ``z``, for axes that the text determines.

    Attributes:
        threads: Number of threads.
        elements: Number of elements that a block works on, where there is a factor of ``blockIdx``
            or a shared array.
    """

    threads: dict[str, int]
    elements: dict[str, int]


def thread_extents(
    kernel: str, sources: Mapping[str, str], entry: str, parameters: Collection[str] = ()
) -> Extents:
    """Return the extents of a block that a kernel's text assumes.

    Args:
        kernel: The kernel's text, head and body.
        sources: All texts with constants, by file.
        entry: The kernel with its template arguments, ``tiled<16>``.
        parameters: Names of the kernel's parameters, which hide constants.
    """
    names: dict[str, str] = {}
    for source in sources.values():
        names |= dict(constants(source, entry))
    for name in parameters:
        names.pop(name, None)
    text = _with_aliases(_spaced(kernel))
    threads, elements = dict[str, int](), dict[str, int]()
    for axis, term in (*_strides(text), *_steps(text), *_indexed(text, names)):
        size = value_of(term, names)
        if axis not in threads and size is not None and 1 < size <= MAX_THREADS:
            threads[axis] = size
    bounds = _BOUNDS.search(text)
    limit = value_of(bounds["term"], names) if bounds else None
    arrays = list(_SHARED.finditer(text))
    if limit and limit <= MAX_THREADS:
        _bounded(threads, limit, "threadIdx.y" in text)
    elif not threads and arrays and not re.search(_HALO.format(arrays[0]["name"]), text):
        size = value_of(_main_part(_extents(arrays[0]["extents"])[-1], names), names)
        if size is not None and 1 < size <= MAX_THREADS:
            threads["x"] = size
    shapes = [_extents(array["extents"]) for array in arrays]
    lines = [("x", extents[0]) for extents in shapes if len(extents) == 1]
    for axis, term in (*_FACTORS.findall(text), *lines):
        elements[axis] = max(elements.get(axis, 0), value_of(term, names) or 0)
    return Extents(threads, {axis: size for axis, size in elements.items() if size})


def _bounded(found: dict[str, int], limit: int, is_plane: bool) -> None:
    """Fill a block of ``limit`` threads."""
    if not is_plane:
        found.setdefault("x", limit)
    elif "y" not in found:
        x = found.setdefault("x", min(limit, 1 << limit.bit_length() // 2))
        found["y"] = max(limit // x, 1)


def _spaced(text: str) -> str:
    """Return a text without comments, with one space around each operator."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"(\+=|[-+*/%()\[\];,=<>])", r" \1 ", text)
    text = re.sub(r"\s*\.\s*", ".", text)
    return re.sub(r"\s+", " ", text)


def _with_aliases(text: str) -> str:
    """Return the text with ``threadIdx.x`` for variables that only stand for it."""
    for name, of in dict(_ALIAS.findall(text)).items():
        word = re.escape(name)
        changes = rf"(?<![\w.]){word} (?:[-+*/%]?=|\+ \+|- -)(?! =)|(?:\+ \+|- -) {word}\b"
        if len(re.findall(changes, text)) == 1:
            text = re.sub(rf"(?<![\w.]){word}\b(?! = )", of, text)
    return text


def _strides(text: str) -> Iterator[tuple[str, str]]:
    """Yield axes and strides of loops over the work of a block."""
    for loop in _LOOP.finditer(text):
        start, stride = loop["start"], loop["term"]
        axes = set(re.findall(r"threadIdx\.([xyz])", start))
        if not axes:  # for (j = 0; ...; j += ROWS) tile[threadIdx.y + j]
            name = loop["name"]
            for axis in "xyz":
                places = "|".join([rf"threadIdx\.{axis}", *_holders(text, axis)])
                if re.search(rf"\b(?:{places}) \+ {name}\b|\b{name} \+ (?:{places})\b", text):
                    axes.add(axis)
        if len(axes) == 1:
            yield axes.pop(), stride


def _holders(text: str, axis: str) -> list[str]:
    """Return variables whose value has ``threadIdx`` of one axis as a summand."""
    found = re.finditer(r"\b(\w+) = ([^;,=]*)[;,]", text)
    return [
        re.escape(one[1]) for one in found
        if re.findall(r"threadIdx\.([xyz])", one[2]) == [axis] and "/" not in one[2]
    ]  # fmt: skip


def _steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield axes and factors of ``blockIdx`` where ``threadIdx`` is added."""
    for pattern in _BLOCKS:
        for found in re.finditer(pattern, text):
            yield found["axis"], found["term"]


def _indexed(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield axes and extents of shared arrays that ``threadIdx`` indexes."""
    for array in _SHARED.finditer(text):
        extents = _extents(array["extents"])
        for use in re.finditer(rf"\b{re.escape(array['name'])} ((?:\[ [^\[\]]+ \] ?)+)", text):
            places = _extents(use[1])
            if use.start() == array.start("name") or len(places) != len(extents):
                continue
            for place, extent in zip(places, extents, strict=True):
                index = re.fullmatch(r"threadIdx\.([xyz])( [+-] \w+)?", place)
                if index and (not index[2] or re.search("[A-Za-z_]", extent)):
                    yield index[1], _main_part(extent, names)


def _extents(text: str) -> list[str]:
    return [part.strip() for part in re.findall(r"\[ ([^\[\]]+) \]", text)]


def _main_part(extent: str, names: Mapping[str, str]) -> str:
    """Return ``TILE`` of ``TILE + 2 * R`` and ``2 * TILE``: no halos, padding or stages."""
    found = re.findall(r"[A-Za-z_]\w*", extent)
    return max(found, key=lambda name: value_of(name, names) or 0, default=extent)

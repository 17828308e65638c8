"""C++ element types of a kernel's pointers, and whether an array's dtype fits."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import signatures

_SIZES = {
    "bool": ("i", 1), "signed char": ("i", 1), "unsigned char": ("i", 1),
    "short": ("i", 2), "unsigned short": ("i", 2), "int": ("i", 4), "unsigned int": ("i", 4),
    "long": ("i", 8), "unsigned long": ("i", 8), "long long": ("i", 8),
    "unsigned long long": ("i", 8), "float": ("f", 4), "double": ("f", 8), "__half": ("f", 2),
    "__nv_bfloat16": ("any", 2),
}  # fmt: skip
"""Whole or floating, and bytes; ``char`` and ``void`` stand for bytes of any kind."""

_VECTOR = re.compile(r"(u?)(char|short|int|longlong|long|float|double)([1-4])(_16a|_32a)?$")
_OTHER_VECTORS = {"__half2": "__half", "__nv_bfloat162": "__nv_bfloat16"}
_SPELLED = {
    "unsigned": "unsigned int", "uint": "unsigned int", "half": "__half", "half2": "__half2",
    "ushort": "unsigned short", "uchar": "unsigned char", "size_t": "unsigned long",
    "int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short",
    "uint16_t": "unsigned short", "int32_t": "int", "uint32_t": "unsigned int",
    "int64_t": "long long", "uint64_t": "unsigned long long",
    "cudaTextureObject_t": "unsigned long long", "cudaSurfaceObject_t": "unsigned long long",
    "short int": "short",
    "unsigned short int": "unsigned short", "long int": "long", "long long int": "long long",
    "unsigned long int": "unsigned long", "unsigned long long int": "unsigned long long",
}  # fmt: skip
_TYPEDEF = re.compile(
    r"\btypedef\s+(?P<old>[\w ]+?)\s+(?P<new>\w+)\s*;"
    r"|\busing\s+(?P<alias>\w+)\s*=\s*(?P<type>[\w ]+?)\s*;"
)


def pointed_to(kinds: Iterable[str]) -> list[str]:
    """Return the type that each parameter points to, ``""`` where it is no pointer or not known."""
    return [kind[:-1] if kind.endswith("*") and kind[-2:] != "**" else "" for kind in kinds]


def declared_types(declarations: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the types of a kernel's parameters as sources declare them; none if they do not."""
    found = signatures.find(declarations, name)
    named = _typedefs(declarations) if found else {}
    return tuple(_plain(kind, named) for kind, _ in found.params) if found else ()


def _typedefs(sources: Mapping[str, str]) -> dict[str, str]:
    """Return names that a source gives to types; none that it gives twice, under conditions."""
    return _typedefs_of(tuple(sources.values()))


@functools.lru_cache(maxsize=16)
def _typedefs_of(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for source in texts:
        for m in _TYPEDEF.finditer(source):
            kind, name = (m["old"], m["new"]) if m["old"] else (m["type"], m["alias"])
            found.setdefault(name, set()).add(" ".join(kind.split()))
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


def _plain(kind: str, named: Mapping[str, str]) -> str:
    """Return a type as it is spelled in a source, without qualifiers."""
    kind = re.sub(r"\b(?:const|volatile|struct|restrict|__\w+__|__restrict)\b", " ", kind)
    kind = re.sub(r"\[[^\]]*\]", "*", kind)
    base, stars = kind.replace("*", " "), kind.count("*")
    words = " ".join(base.split())
    for _ in range(len(named)):
        words = named.get(words, words)
    return _SPELLED.get(words, words) + "*" * stars


def spelled(kind: str, sources: Mapping[str, str]) -> str:
    """Return a type as it is spelled in some sources, by the name that is used here."""
    return _plain(kind, _typedefs(sources))


def wrapped(kind: str, value: int) -> str:
    """Return a remark on a number that only an unsigned parameter could hold; ``""``: it fits.

    C++ converts it silently, and so does the simulator: ``0xffffffff`` may be a mask.
    """
    what, nbytes = _SIZES.get(kind, ("", 0))
    if what != "i" or kind == "bool" or "unsigned" in kind or value < 1 << 8 * nbytes - 1:
        return ""
    return f"the kernel takes {kind}, for which {value} is {value - (1 << 8 * nbytes)}"


def doubts(element: str, kind: str, dtype: Any) -> list[str]:
    """Return remarks on an array passed to a parameter: its elements, and non-pointer types.

    A parameter of type ``unsigned long long`` may hold an address: ``CUdeviceptr``, ``uintptr_t``.
    """
    wrong = misfit(element, dtype)
    sentences = [f"{wrong}; its bytes are taken as they are"] if wrong else []
    if kind in ("long", "long long", "unsigned long"):
        sentences.append(f"the kernel takes {kind}, no pointer; the array's address is taken")
    return sentences


def is_structure(element: str) -> bool:
    """Whether what a pointer points to is no type of C++'s own: there may be padding in it."""
    own = (*_SIZES, *_OTHER_VECTORS, "", "char", "void")
    return element not in own and not _VECTOR.match(element)


def vector_of(kind: str) -> tuple[str, int]:
    """Return a CUDA vector type's element and their number; other types have one element."""
    if kind in _OTHER_VECTORS:
        return _OTHER_VECTORS[kind], 2
    m = _VECTOR.match(kind)
    if m is None:
        return kind, 1
    wide = {"longlong": "long long"}.get(m[2], m[2])
    return f"unsigned {wide}" if m[1] else "signed char" if wide == "char" else wide, int(m[3])


def dtype_of(kind: str) -> np.dtype[Any] | None:
    """Return the dtype of a type's elements, of a vector type's too; ``None`` if it has none."""
    element = vector_of(kind)[0]
    what, size = _SIZES.get(element, ("any", 0))
    if what == "any":
        return None
    is_unsigned = "unsigned" in element or element == "bool"
    return np.dtype(f"{'u' if what == 'i' and is_unsigned else what}{size}")


def misfit(element: str, dtype: Any) -> str:
    """Return why an array does not fit a pointer to ``element``; ``""`` if it does.

    Signed arrays are accepted for unsigned pointers, and every dtype for pointers to bytes.
    """
    if dtype.newbyteorder("<") != dtype:
        return f"the array is big-endian ({dtype.str}), a GPU is not"
    known = _SIZES.get(vector_of(element)[0])
    if known is None or dtype.kind not in "biufc":
        return ""
    kind, size = known
    given = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    whole = dtype.kind in "biu"
    if given == size and (kind == "any" or whole == (kind == "i")):
        return ""
    return f"the kernel takes {element}*, the array is {dtype.name}"

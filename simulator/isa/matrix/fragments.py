"""How matrices lie across the registers of a warp (PTX ISA, "Matrix Fragments for mma").

Lane ``4 * g + t`` holds elements of row ``g`` of A and D and of column ``g`` of B; a register has
as many neighbours along K as fit (of D: along N). A matrix of sixteen rows is two of eight, one
register after the other; more along K or N are further registers. Matrices of numbers here have
``(K, M, warps)``, ``(K, N, warps)`` or ``(M, N, warps)``: ``warps`` is one axis, contiguous.
"""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.geometry import Geometry, Lanes

BITS = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8,
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
"""Bits of an element of each type that matrices have."""


class ProductShape(NamedTuple):
    """A product: M x N from M x K and K x N."""

    m: int
    n: int
    k: int


@functools.cache
def shape(modifiers: tuple[str, ...]) -> ProductShape:
    """Return the shape that an instruction names."""
    found = (re.fullmatch(r"m(\d+)n(\d+)k(\d+)", modifier) for modifier in modifiers)
    return next(ProductShape(*map(int, m.groups())) for m in found if m)


def kinds(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types of D, A, B and C of a product; of a load or store, of its matrix."""
    found = tuple(m for m in modifiers if m in BITS)
    if len(found) == 2:  # ``wmma`` of f16 names but D's and C's
        return found[0], "f16", "f16", found[1]
    return (*found, found[0]) if len(found) == 3 else found


def register_type(kind: str) -> str:
    """Return the type as which the registers of a matrix are read and written."""
    return kind if kind in ("f32", "f64") else "u32"


@functools.cache
def registers(modifiers: tuple[str, ...]) -> dict[str, tuple[int, str]]:
    """Return number and type of the registers of the matrices ``d``, ``a``, ``b`` and ``c``."""
    m, n, k = shape(modifiers)
    if "load" in modifiers or "store" in modifiers:
        return {"m": _registers(modifiers, ProductShape(m, n, k))}
    m //= 4 if "mma_async" in modifiers else 1  # a warp's part
    sparse = 2 if any(modifier.startswith("sp") for modifier in modifiers) else 1
    four = 4 if (m, n, k) == (8, 8, 4) and "f64" not in modifiers else 1  # products in a warp
    sizes = {"d": m * n, "a": m * k // sparse, "b": k * n, "c": m * n}
    found = {
        name: (_count(size * four, kind), _word(kind, name, modifiers))
        for (name, size), kind in zip(sizes.items(), kinds(modifiers), strict=True)
    }
    if "mma" in modifiers and kinds(modifiers)[1] == "f16":
        found["a"] = found["b"] = (_WMMA_HALF, _HALVES)
    return found


_WMMA_HALF = 8
"""Registers of a matrix A or B of f16 that ``wmma`` has, whatever its shape."""


_HALVES = "f16x2"
"""Their type, or 32 bits."""


def _word(kind: str, name: str, modifiers: tuple[str, ...]) -> str:
    """Return the type of a matrix's registers, as an operand's: what ptxas 13.0 takes."""
    if kind in ("f32", "f64"):
        return kind
    whole = kind[0] in "su" or kind == "b1"
    if kind == "f16" or ("mma_async" in modifiers and not whole):
        return _HALVES
    if kind in ("bf16", "tf32"):
        return "tf32"
    by_wmma = "mma" in modifiers or ("load" in modifiers and BITS[kind] >= 8)
    return "i32" if by_wmma or name in ("c", "d") else "b32"


def _count(size: int, kind: str) -> int:
    """Return the number of registers for so many elements."""
    return size * BITS[kind] // (2048 if kind == "f64" else 1024)


def _registers(modifiers: tuple[str, ...], size: ProductShape) -> tuple[int, str]:
    """Return number and type of registers of a loaded or stored matrix."""
    name = next(m for m in modifiers if m in ("a", "b", "c", "d"))
    kind = kinds(modifiers)[0]
    if name in ("a", "b") and kind == "f16":
        return _WMMA_HALF, _HALVES
    m, n, k = size
    count = _count({"a": m * k, "b": k * n}.get(name, m * n), kind)
    return count, _word(kind, name, modifiers)


def stacked(geometry: Geometry, words: Sequence[Lanes], *split: int) -> Lanes:
    """Return registers as ``(*split, warps, 8, 4, blocks or 1)``."""
    rows = [geometry.by_warp(word, word.dtype.type(0)) for word in words]
    columns = max(row.shape[2] for row in rows)
    stack = np.empty((len(rows), *rows[0].shape[:2], columns), rows[0].dtype)
    for into, row in zip(stack, rows, strict=True):
        into[:] = row
    return stack.reshape(*split, geometry.warps, 8, 4, columns)


def elements(words: Lanes, bits: int) -> list[Lanes]:
    """Return the elements that words hold, from the low ones on."""
    if bits >= 32:
        return [words]
    kind = np.uint16 if bits == 16 else np.uint8
    mask = np.uint32((1 << bits) - 1)
    return [((words >> np.uint32(at)) & mask).astype(kind) for at in range(0, 32, bits)]


def rows_of(geometry: Geometry, words: Sequence[Lanes], bits: int, rows: int = 8) -> Lanes:
    """Return a matrix A of 8 or 16 rows, ``(K, rows, warps)``; of B the columns."""
    high = rows // 8
    parts = elements(stacked(geometry, words, len(words) // high, high), bits)
    depth, _, warps, _, _, columns = parts[0].shape
    found = np.empty((depth, 4, len(parts), high, 8, warps, columns), parts[0].dtype)
    for j, part in enumerate(parts):
        found[:, :, j] = part.transpose(0, 4, 1, 3, 2, 5)
    return found.reshape(-1, rows, warps * columns)


def outputs_of(geometry: Geometry, words: Sequence[Lanes], bits: int, rows: int) -> Lanes:
    """Return a matrix C of 8 or 16 rows and all columns, ``(rows, columns, warps)``."""
    high, two = rows // 8, 2 if bits >= 32 else 1
    tiles = len(words) // (high * two)
    parts = elements(stacked(geometry, words, tiles, high, two), bits)
    warps, columns = parts[0].shape[3], parts[0].shape[6]
    found = np.empty((high, 8, tiles, 4, 2, warps, columns), parts[0].dtype)
    for j in range(2):
        part = parts[0][:, :, j] if two == 2 else parts[j][:, :, 0]
        found[:, :, :, :, j] = part.transpose(1, 3, 0, 4, 2, 5)
    return found.reshape(rows, tiles * 8, warps * columns)


def to_registers(geometry: Geometry, matrix: Lanes) -> list[Lanes]:
    """``outputs_of`` back: the registers of D."""
    rows, across, warps = matrix.shape
    high, tiles = rows // 8, across // 8
    columns = warps // geometry.warps
    split = matrix.reshape(high, 8, tiles, 4, 2, geometry.warps, columns)
    lanes = split.transpose(2, 0, 4, 5, 1, 3, 6)  # tiles, high, two, warps, g, t, blocks
    if matrix.dtype == np.uint16:
        low, other = (lanes[:, :, j].astype(np.uint32) for j in range(2))
        lanes = (low | other << np.uint32(16))[:, :, None]
    flat = np.ascontiguousarray(lanes).reshape(-1, geometry.warps * 32, columns)
    return [geometry.from_rows(rows) for rows in flat]


def bits_of(matrix: Lanes) -> Lanes:
    """Return single-precision values as their bits, others unchanged."""
    return matrix.view(np.uint32) if matrix.dtype == np.float32 else matrix


def widest(*matrices: Lanes) -> list[Lanes]:
    """Return matrices that are the same in all blocks, given to each where others differ."""
    many = max(matrix.shape[2] for matrix in matrices)
    return [
        matrix if matrix.shape[2] == many else np.repeat(matrix, many // matrix.shape[2], axis=2)
        for matrix in matrices
    ]


# -- m8n8k4 of f16: four products in a warp, lane ``16 * half + 4 * product + q`` ---------------


def _quarters(geometry: Geometry, words: Sequence[Lanes], *split: int) -> Lanes:
    """Return registers as ``(*split, warps, half, product, q, blocks or 1)``."""
    found = stacked(geometry, words, len(words))
    return found.reshape(*split, geometry.warps, 2, 4, 4, found.shape[-1])


def quarter_rows(geometry: Geometry, words: Sequence[Lanes], along_k: bool) -> Lanes:
    """Return four matrices A or B, ``(4, 8, warps * 4)``; whether a lane's elements lie along K."""
    parts = elements(_quarters(geometry, words, len(words)), 16)
    found = np.stack(parts, 1).reshape(4, *parts[0].shape[1:])
    return found.transpose((0, 2, 4, 1, 3, 5) if along_k else (4, 2, 0, 1, 3, 5)).reshape(4, 8, -1)


_LANES = (4, 1, 7, 0, 6, 2, 3, 5, 8)
"""Of the axes of an f32 register and its lane (i2, i1, i0, warp, half, product, q1, q0, block):
those of the row, of the column, the rest."""


def quarter_outputs(geometry: Geometry, words: Sequence[Lanes]) -> Lanes:
    """Return four matrices C, ``(8, 8, warps * 4)``."""
    if len(words) == 8:
        found = _quarters(geometry, words, 2, 2, 2)
        lanes = found.reshape(*found.shape[:6], 2, 2, found.shape[-1])
        return lanes.transpose(_LANES).reshape(8, 8, -1)
    parts = elements(_quarters(geometry, words, len(words)), 16)
    found = np.stack(parts, 1).reshape(8, *parts[0].shape[1:])
    return found.transpose(2, 4, 0, 1, 3, 5).reshape(8, 8, -1)


def quarter_registers(geometry: Geometry, matrix: Lanes) -> list[Lanes]:
    """``quarter_outputs`` back."""
    warps = geometry.warps
    if matrix.dtype == np.uint16:
        lanes = matrix.reshape(2, 4, 4, 2, warps, 4, -1).transpose(2, 3, 4, 0, 5, 1, 6)
        words = lanes[:, 0].astype(np.uint32) | lanes[:, 1].astype(np.uint32) << np.uint32(16)
    else:
        split = matrix.reshape(2, 2, 2, 2, 2, 2, warps, 4, -1)
        words = np.ascontiguousarray(split.transpose(np.argsort(_LANES)))
    flat = words.reshape(-1, warps * 32, words.shape[-1])
    return [geometry.from_rows(rows) for rows in flat]

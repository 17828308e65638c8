"""Tensor maps: what the copies of tensors in bulk (TMA) are told of an array."""

import math
import struct
from dataclasses import dataclass
from typing import Any

SWIZZLES = (0, 32, 64, 128)
MOST_BOX = 256
_UNIT = 16
_LAYOUT = struct.Struct("<8sQ4B5I5H5B")
_MAGIC = b"tiledmap"
NBYTES = 128
"""Of a ``CUtensorMap``."""


@dataclass(frozen=True, eq=False)
class TensorMap:
    """What ``cuTensorMapEncodeTiled`` makes of an array, as an argument of a kernel.

    Attributes:
        array: With 1 to 5 axes; the last is the one that PTX counts first.
        box: How many elements along each axis a copy moves; in the array's order of axes.
        swizzle: 32, 64 or 128: so many bytes of shared memory are swizzled; 0: none are.
        steps: Along each axis every so many-th element is taken; all of them, if not given.
    """

    array: Any
    box: tuple[int, ...]
    swizzle: int = 0
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        rank, size = self.array.ndim, self.array.dtype.itemsize
        object.__setattr__(self, "steps", tuple(self.steps) or (1,) * rank)
        inner = self.box[-1] * size if self.box else 0
        wrong = (
            (not 1 <= rank <= 5, f"an array of {rank} axes; it may have 1 to 5"),
            (size not in (1, 2, 4, 8), f"elements of {size} bytes"),
            (len(self.box) != rank or len(self.steps) != rank, f"the array has {rank} axes"),
            (not all(1 <= n <= MOST_BOX for n in self.box), "a box has 1 to 256 along each axis"),
            (not all(1 <= n <= 8 for n in self.steps), "steps are 1 to 8"),
            (inner % _UNIT, f"a box's rows are {inner} bytes: no multiple of {_UNIT}"),
            (self.swizzle not in SWIZZLES, f"swizzle is one of {SWIZZLES}"),
            (
                self.swizzle and inner > self.swizzle,
                f"a box's rows are {inner} bytes, and {self.swizzle} at most with this swizzle",
            ),
            (
                rank > 1 and self.array.shape[-1] * size % _UNIT,
                f"the array's rows are no multiple of {_UNIT} bytes",
            ),
            (0 in self.array.shape, "an array without elements"),
        )
        for bad, why in wrong:
            if bad:
                raise ValueError(f"TensorMap: {why}")

    def packed(self, address: int) -> bytes:
        """The simulator's own form of it, for an array that stands at an address."""
        rank, size = self.array.ndim, self.array.dtype.itemsize
        numbers: list[int] = []
        for each in (self.array.shape, self.box, self.steps):
            numbers += [*reversed(each), *[1] * (5 - rank)]
        raw = _LAYOUT.pack(_MAGIC, address, rank, size, self.swizzle, 0, *numbers)
        return raw.ljust(NBYTES, b"\0")


def array_of(arg: Any) -> Any:
    """An argument, or the array of which it is a tensor map."""
    return arg.array if isinstance(arg, TensorMap) else arg


@dataclass(frozen=True)
class Tiling:
    """A tensor map as an instruction finds it; the axis that PTX counts first is the first."""

    address: int
    size: int
    swizzle: int
    shape: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements along each axis a copy moves."""
        return tuple(-(-n // step) for n, step in zip(self.box, self.steps, strict=True))

    @property
    def nbytes(self) -> int:
        """How many bytes a copy moves, those outside of the array among them."""
        return math.prod(self.counts) * self.size


def unpacked(raw: bytes) -> Tiling | None:
    """A tensor map from its bytes; ``None`` if they are none."""
    if len(raw) < _LAYOUT.size or not raw.startswith(_MAGIC):
        return None
    _, address, rank, size, swizzle, _, *rest = _LAYOUT.unpack(raw[: _LAYOUT.size])
    parts = (tuple(rest[at : at + rank]) for at in (0, 5, 10))
    return Tiling(address, size, swizzle, *parts)

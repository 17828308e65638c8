"""``TensorMap``: descriptors of arrays for tensor copies (TMA)."""

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

SWIZZLES = (0, 32, 64, 128)
MAX_BOX, MAX_PIXELS = 256, 1024
_UNIT, _FAR = 16, 1 << 40
_LAYOUT = struct.Struct("<8sQ6B5I5H5B6h4Q")
_MAGIC = b"tiledmap"
NBYTES = 128
"""Of a ``CUtensorMap``."""
TYPES = {
    "u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "bf16": 2, "f32": 4,
    "f64": 8,
}  # fmt: skip
"""Bytes of the elements that a map may name, by PTX type."""
_NAMES = {"i": "s", "f": "f"}
_CORNERS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
"""How far from an image a corner may be, by the array's axes."""


@dataclass(frozen=True, eq=False)
class TensorMap:
    """Tensor map (``CUtensorMap``) of an array, as a kernel's argument.

    Attributes:
        array: Array with 1 to 5 axes; its last axis is PTX's first.
        box: Elements that a copy moves along each axis, in the array's order of axes. With
            ``corners``: pixels (up to 1024) and channels of each (up to 256).
        swizzle: Width of the shared-memory swizzle in bytes: 32, 64 or 128; 0: none.
        steps: Element stride along each axis; default: ones.
        type: PTX type of the elements; default: from the dtype. Integers of 8 and 16 bits are
            unsigned. Reductions compute in this type.
        nan: Whether elements outside of the array read as NaN instead of zero.
        corners: For an array (images, [depth, height,] width, channels): lower and upper corner of
            the pixel box along each axis of an image, the upper one relative to the image's end
            (PTX ISA, "im2col mode"). ``None``: tiled mode.
        shape, strides: Layout of the tensor in the array's memory, if it differs from the array: 1
            to 5 extents in the array's order, and byte strides of all axes but the last, multiples
            of 16 (``globalDim`` and ``globalStrides`` in reverse). Examples are padded rows, or
            heads between the rows of a matrix.

    Raises:
        ValueError: The driver would reject the map, or it exceeds the array.
    """

    array: Any
    box: tuple[int, ...]
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    type: str = ""
    nan: bool = False
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._check_types()
        size, shape = self.array.dtype.itemsize, tuple(self.shape) or self.array.shape
        rank = len(shape)
        dense = tuple(size * math.prod(shape[axis:]) for axis in range(1, rank))
        strides = tuple(self.strides) or dense
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "strides", strides)
        object.__setattr__(self, "steps", tuple(self.steps) or (1,) * rank)
        name = _NAMES.get(self.array.dtype.kind, "u") + str(8 * size)
        object.__setattr__(self, "type", self.type or (name if name in TYPES else f"u{8 * size}"))
        inner = self.box[-1] * size if self.box else 0
        images = self.corners is not None
        limits = (MAX_PIXELS, MAX_BOX) if images else (MAX_BOX,) * rank
        wrong = (
            (not 1 <= rank <= 5, f"an array of {rank} axes; it may have 1 to 5"),
            (size not in (1, 2, 4, 8), f"elements of {size} bytes"),
            (TYPES.get(self.type) != size, f"{self.type} for elements of {size} bytes"),
            (self.nan and "f" not in self.type, f"no {self.type} is NaN"),
            (images and rank < 3, f"an array of {rank} axes; images have 3 to 5"),
            (images and len(self.box) != 2, "of images a box is so many pixels and channels"),
            (
                len(self.steps) != rank or not (images or len(self.box) == rank),
                f"the array has {rank} axes",
            ),
            (
                not all(1 <= n <= m for n, m in zip(self.box, limits, strict=False)),
                f"a box has 1 to {limits[0]} along each axis",
            ),
            (not all(1 <= n <= 8 for n in self.steps), "steps are 1 to 8"),
            (inner % _UNIT, f"a box's rows are {inner} bytes: no multiple of {_UNIT}"),
            (
                self.swizzle and inner > self.swizzle,
                f"a box's rows are {inner} bytes, and {self.swizzle} at most with this swizzle",
            ),
            (
                strides == dense and rank > 1 and shape[-1] * size % _UNIT,
                f"the array's rows are no multiple of {_UNIT} bytes",
            ),
            (not all(n > 0 for n in shape), "an array without elements"),
            (len(strides) != rank - 1, f"{rank} axes have {rank - 1} strides"),
            (not all(0 <= n < _FAR and n % _UNIT == 0 for n in strides),
             f"strides are multiples of {_UNIT} bytes, below 2**40"),
            (sum((n - 1) * step for n, step in zip(shape, (*strides, size), strict=False)) + size
             > self.array.nbytes, "it reaches beyond the array"),
            (images and not self._corners_fit(rank), "corners have a number for each axis of an "
             "image, not too far from it"),
        )  # fmt: skip
        for bad, why in wrong:
            if bad:
                raise ValueError(f"TensorMap: {why}")

    def _check_types(self) -> None:
        """Check the types of the attributes, on which the other checks rely."""
        corners = self.corners if isinstance(self.corners, (tuple, list)) else ()
        if not isinstance(self.array, np.ndarray):
            raise ValueError(f"TensorMap: an array of NumPy's, not {type(self.array).__name__}")
        if not whole_numbers([self.swizzle]) or self.swizzle not in SWIZZLES:
            listed = ", ".join(map(str, SWIZZLES[:-1]))
            raise ValueError(
                f"TensorMap: swizzle is the bytes that are swizzled, {listed} or {SWIZZLES[-1]}, "
                f"not {self.swizzle!r}"
            )
        for name in ("box", "steps", "shape", "strides"):
            if not whole_numbers(given := getattr(self, name)):
                raise ValueError(f"TensorMap: {name} is a tuple of whole numbers, not {given!r}")
        if self.corners is not None and not (
            len(corners) == 2 and all(map(whole_numbers, corners))
        ):
            raise ValueError(
                f"TensorMap: corners are two tuples of whole numbers, not {self.corners!r}"
            )

    def _corners_fit(self, rank: int) -> bool:
        far = _CORNERS.get(rank, 0)
        return all(
            len(corner) == rank - 2 and all(-far <= n < far for n in corner)
            for corner in self.corners or ()
        )

    def packed(self, address: int) -> bytes:
        """Return the simulator's encoding, for an array at an address."""
        rank, size = len(self.shape), self.array.dtype.itemsize
        numbers: list[int] = []
        for each in (self.shape, self.box, self.steps):
            numbers += [*reversed(each), *[1] * (5 - len(each))]
        for corner in self.corners or ((), ()):
            numbers += [*reversed(corner), *[0] * (3 - len(corner))]
        numbers += [*reversed(self.strides), *[0] * (4 - len(self.strides))]
        kind, images = list(TYPES).index(self.type), self.corners is not None
        head = (rank, size, self.swizzle, self.nan, kind, images)
        raw = _LAYOUT.pack(_MAGIC, address, *head, *numbers)
        return raw.ljust(NBYTES, b"\0")


def whole_numbers(given: Any) -> bool:
    """Whether a value is a tuple or list of integers."""
    return isinstance(given, (tuple, list)) and all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given
    )


def array_of(arg: Any) -> Any:
    """Return an argument, or the array of a tensor map."""
    return arg.array if isinstance(arg, TensorMap) else arg


@dataclass(frozen=True)
class Tiling:
    """Decoded tensor map, with PTX's order of axes.

    ``strides``: byte stride of each axis. ``corners``: empty in tiled mode.
    """

    address: int
    size: int
    swizzle: int
    nan: bool
    type: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    strides: tuple[int, ...]
    corners: tuple[tuple[int, ...], ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements along each axis that a copy moves; in im2col mode channels and pixels."""
        if self.corners:
            return self.box
        return tuple(-(-n // step) for n, step in zip(self.box, self.steps, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes that a copy moves, including elements outside of the array."""
        return math.prod(self.counts) * self.size


def unpacked(raw: bytes) -> Tiling | None:
    """Decode a tensor map; ``None`` if the bytes are none."""
    if len(raw) < _LAYOUT.size or not raw.startswith(_MAGIC):
        return None
    _, address, *rest = _LAYOUT.unpack(raw[: _LAYOUT.size])
    rank, size, swizzle, nan, kind, images = rest[:6]
    shape, box, steps = (tuple(rest[at : at + rank]) for at in (6, 11, 16))
    corners = tuple(tuple(rest[at : at + rank - 2]) for at in (21, 24)) if images else ()
    name, strides = list(TYPES)[kind], (size, *rest[27 : 26 + rank])
    box = box[:2] if images else box
    return Tiling(address, size, swizzle, bool(nan), name, shape, box, steps, strides, corners)

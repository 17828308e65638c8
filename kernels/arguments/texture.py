"""``Texture`` and ``Surface``: arrays for ``tex2D``, ``surf2Dwrite`` and related functions."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

FILTERS, READS = ("point", "linear"), ("element", "normalized")
ADDRESSES = ("clamp", "border", "wrap", "mirror")
NBYTES = 8
"""Of a ``cudaTextureObject_t`` or a ``cudaSurfaceObject_t``."""
_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")


def _shape(array: Any, channels: int, layered: bool) -> tuple[tuple[int, ...], int]:
    """Return the extents, x first, and the number of layers (0 without layers)."""
    shape = array.shape[:-1] if channels > 1 else array.shape
    layers = shape[0] if layered and shape else 0
    return tuple(reversed(shape[1:] if layered else shape)), layers


def _check_types(of: "Texture | Surface") -> None:
    """Check the attributes' types, on which the other checks rely."""
    name = type(of).__name__
    if not isinstance(of.array, np.ndarray):
        raise ValueError(f"{name}: an array of NumPy's, not {type(of.array).__name__}")
    if of.channels not in (1, 2, 4):
        raise ValueError(f"{name}: a texel has 1, 2 or 4 channels, not {of.channels!r}")


def _refuse(of: "Texture | Surface", *more: tuple[Any, str]) -> None:
    """Raise for the first invalid attribute; types are valid already."""
    dtype, channels = of.array.dtype, of.channels
    known = f"{dtype.kind}{dtype.itemsize}" in _TYPES and dtype.isnative
    wrong = (
        (not known, f"texels of {dtype}; they may be integers of up to 32 bits, float16, float32"),
        (channels > 1 and of.array.shape[-1:] != (channels,),
         f"the array's last axis is not the {channels} channels of a texel"),
        (not 1 <= len(of.sizes) <= 3 - of.layered, "it has 1 to 3 axes, beside channels"),
        (0 in of.array.shape, "an array without elements"),
        *more,
    )  # fmt: skip
    for bad, why in wrong:
        if bad:
            raise ValueError(f"{type(of).__name__}: {why}")


@dataclass(frozen=True, eq=False)
class Texture:
    """Texture object (``cudaTextureObject_t``) of an array, as an argument.

    Attributes:
        array: Array of 1 to 3 axes, x last: integers of 8, 16 or 32 bits, float16 or float32.
        filter: ``point`` or ``linear``.
        address: Mode outside of the array, for all axes: ``clamp``, ``border``, or, with normalised
            coordinates, ``wrap`` or ``mirror``.
        normalized: Whether coordinates range from 0 to 1 instead of the array's size.
        read: ``element``, or ``normalized``: 8- and 16-bit integers become floats in [0, 1] or [-1,
            1] (``cudaReadModeNormalizedFloat``).
        channels: 2 or 4: the array's last axis has the channels of a texel (``float4``).
        layered: Whether the array's first axis has layers.
        border: Value of ``address="border"``, a float for each channel.
        linear: Whether it is linear memory, which only ``tex1Dfetch`` reads; the kernel may also
            have a pointer to the array.
        start, row: On a ``Device``, where the texels lie in their allocation: the number of texels
            before the first one, and from a row to the next (0: the array is dense).

    Raises:
        ValueError: CUDA has no such texture (CUDA C++ Programming Guide, "Texture Object API").
    """

    array: Any
    filter: str = "point"
    address: str = "clamp"
    normalized: bool = False
    _: KW_ONLY
    read: str = "element"
    channels: int = 1
    layered: bool = False
    border: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    linear: bool = False
    start: int = 0
    row: int = 0

    def __post_init__(self) -> None:
        _check_types(self)
        if not isinstance(self.border, (tuple, list)):
            raise ValueError(f"Texture: border has four numbers, not {self.border!r}")
        dtype, scaled = self.array.dtype, self.read == "normalized"
        floats = dtype.kind == "f" or scaled
        plain = self.filter == "point" and self.address == "clamp" and not self.normalized
        _refuse(
            self,
            (self.filter not in FILTERS, f"filter is one of {FILTERS}"),
            (self.address not in ADDRESSES, f"address is one of {ADDRESSES}"),
            (self.read not in READS, f"read is one of {READS}"),
            (scaled and (dtype.kind == "f" or dtype.itemsize > 2),
             "read='normalized' is for integers of 8 or 16 bits"),
            (self.filter == "linear" and not floats,
             "filter='linear' is for floats, and for read='normalized'"),
            (self.address in ("wrap", "mirror") and not self.normalized,
             f"address='{self.address}' needs normalized=True (CUDA would clamp)"),
            (len(self.border) != 4, "border has four numbers"),
            (any(self.border) and not floats, "a border other than 0 is for floats"),
            (self.linear and (len(self.sizes) != 1 or self.layered or not plain),
             "linear memory has one axis, and is read by tex1Dfetch alone: no filter, address mode "
             "or normalised coordinates"),
        )  # fmt: skip

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents in texels, x first."""
        return _shape(self.array, self.channels, self.layered)[0]

    @property
    def layers(self) -> int:
        """Number of layers; 0 if it is not layered."""
        return _shape(self.array, self.channels, self.layered)[1]


@dataclass(frozen=True, eq=False)
class Surface:
    """Surface object (``cudaSurfaceObject_t``) of an array, as an argument.

    Attributes:
        array, channels, layered: As for ``Texture``; a kernel may have both of one array.

    Raises:
        ValueError: CUDA has no such surface.
    """

    array: Any
    _: KW_ONLY
    channels: int = 1
    layered: bool = False

    def __post_init__(self) -> None:
        _check_types(self)
        _refuse(self)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents in texels, x first."""
        return _shape(self.array, self.channels, self.layered)[0]

    @property
    def layers(self) -> int:
        """Number of layers; 0 if it is not layered."""
        return _shape(self.array, self.channels, self.layered)[1]


def described(of: Texture | Surface) -> str:
    """Describe an object for a message: ``a 2-D texture of float32``."""
    name, dtype = type(of).__name__.lower(), str(of.array.dtype)
    kind = f"a {'layered ' * of.layered}{len(of.sizes)}-D {name} of {dtype}"
    return kind + (f" x {of.channels}" if of.channels > 1 else "")

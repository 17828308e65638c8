"""Texture fetches: ``tex``, ``tld4`` (PTX ISA, "Texture Instructions")."""

import itertools
from dataclasses import replace

import numpy as np

from kernels.arguments.texture import Texture, described

from ...core.geometry import Flat
from ...isa.decoded import roles
from ..event import ADDRESS_SPACE
from ..memories import AddressSpaces
from ..site import Site
from ..storage.image_handles import Picture
from ..storage.spaces import Allocation
from . import filtering
from .images import ImageAccess, layers, texel_numbers
from .surfaces import SurfaceAccess, SurfaceQuery

_MOVED = -8, 7
"""The least and the greatest offset of texels (PTX ISA, "Texture Instructions: tex")."""
_GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))
"""The texels that ``tld4`` gives, in its order."""


class TextureFetch(ImageAccess):
    """A fetch instruction bound to a launch."""

    def __init__(self, site: Site, memories: AddressSpaces) -> None:
        super().__init__(site, memories)
        self.type, self.count = site.instruction.types[0], 4
        self.gathers = roles(site.instruction).row.picture == "gather"
        self._sites: dict[int, Site] = {}  # by the bytes of the parts of texels in events

    def misused(self, of: Picture) -> str:
        """See ``ImageAccess``."""
        if (wrong := super().misused(of)) or not isinstance(of, Texture):
            return wrong
        floats = of.array.dtype.kind == "f" or of.read == "normalized"
        if floats != (self.type == "f32"):
            return "as one of floats" if floats is False else "as one of integers"
        if self.shape.axes == 1 and of.linear == self.shape.floats:
            given = "tex1Dfetch (integers) alone" if of.linear else "tex1D (floats)"
            return f"which is read by the coordinates of {given}"
        return ""

    def do(
        self, array: Allocation, of: Picture, lanes: tuple[Flat, Flat], given: list[Flat]
    ) -> list[Flat]:
        """See ``ImageAccess``."""
        assert isinstance(of, Texture)
        layer = layers(of, given)
        given, moves = given[: self.shape.axes], given[self.shape.axes :]
        if any((move != move.clip(*_MOVED)).any() for move in moves):
            where = f"at an offset that is not from {_MOVED[0]} to {_MOVED[1]}"
            self.bad(ADDRESS_SPACE, lanes, array, 0, f"{array.name}, {described(of)}, {where}")
        moves = moves or [np.zeros(1, np.int64)] * len(given)
        linear = self.shape.floats and (of.filter == "linear" or self.gathers)
        if self.shape.floats:
            found = [
                filtering.axis(x, size, of.address, of.normalized, linear, move)
                for x, size, move in zip(given, of.sizes, moves, strict=True)
            ]
        else:  # outside of it there are zeros, whatever the address mode
            found = []
            for x, size, move in zip(given, of.sizes, moves, strict=True):
                at = x.astype(np.int64) + move
                only = np.where((at >= 0) & (at < size), at, -1)
                found.append(filtering.Axis(only, only, x))
        corners = itertools.product((0, 1), repeat=len(found)) if linear else [(0,) * len(found)]
        places = {
            corner: texels(
                of, [axis[side] for axis, side in zip(found, corner, strict=True)], layer
            )
            for corner in corners
        }
        self._notify(array, of, lanes, np.stack([*places.values()], -1))
        weights = tuple(axis.weight for axis in found)
        if self.gathers:
            channel = "rgba".index(next(m for m in self.site.instruction.modifiers if m in "rgba"))
            return [self._point(array, of, places[corner], channel) for corner in _GATHERED]
        if not linear:
            (place,) = places.values()
            return [self._point(array, of, place, channel) for channel in range(4)]
        return [self._linear(array, of, places, weights, channel) for channel in range(4)]

    def _notify(
        self, array: Allocation, of: Texture, lanes: tuple[Flat, Flat], number: Flat
    ) -> None:
        size = of.array.dtype.itemsize * of.channels
        at = array.base + np.maximum(number, 0) * size
        part = min(size, 4)
        site = self._sites.setdefault(part, replace(self.site, type=f"b{8 * part}"))
        words = at[..., None] + np.arange(0, size, 4) if size > 4 else at
        inside = np.broadcast_to((number >= 0).reshape(*number.shape, *[1] * (words.ndim - 2)),
                                 words.shape)  # fmt: skip
        self.notify(array, lanes, words, None, None if inside.all() else inside, site)

    def _texels(self, array: Allocation, of: Texture, number: Flat, channel: int) -> Flat:
        """Return texels including border ones; integers may be normalised."""
        dtype, count = of.array.dtype, of.channels
        if channel >= count:
            return np.zeros(number.shape, np.float32 if self.type == "f32" else dtype)
        found: Flat = array.buffer.view(dtype)[np.maximum(number, 0) * count + channel]
        outside = number < 0
        edge = of.border[channel] if self.shape.floats else 0.0
        if dtype.kind == "f":
            found = found.astype(np.float32)
        elif edge:
            full = np.iinfo(dtype).max
            edge = np.rint(np.clip(edge, 0 if dtype.kind == "u" else -1, 1) * full)
        if outside.any():
            found = np.where(outside, np.array(edge).astype(found.dtype), found)
        return found

    def _point(self, array: Allocation, of: Texture, number: Flat, channel: int) -> Flat:
        found = self._texels(array, of, number, channel)
        if found.dtype.kind == "f":
            return found
        if self.type == "f32":
            return filtering.normalised(found)
        return found.astype(np.int32 if found.dtype.kind == "i" else np.uint32)

    def _linear(self, array: Allocation, of: Texture, places: filtering.Texels,
                weights: tuple[Flat, ...], channel: int) -> Flat:  # fmt: skip
        dtype = of.array.dtype
        texels = {c: self._texels(array, of, number, channel) for c, number in places.items()}
        if channel >= of.channels:
            return np.zeros(len(weights[0]), np.float32)
        if dtype.kind == "f":
            return filtering.floats(texels, weights, 24 if dtype.itemsize == 4 else 11)
        return filtering.integers(texels, weights, dtype)


def texels(of: Texture, axes: list[Flat], layer: Flat | None) -> Flat:
    """Return the indices of texels, -1 in the border."""
    outside = np.logical_or.reduce([axis < 0 for axis in axes])
    return np.where(outside, -1, texel_numbers(of, axes, layer))


def bind(site: Site, memories: AddressSpaces) -> ImageAccess:
    """Return the callback of generated code for a texture or surface instruction."""
    made = {"size": ImageAccess, "surface": SurfaceAccess, "surface size": SurfaceQuery}
    return made.get(roles(site.instruction).row.picture, TextureFetch)(site, memories)

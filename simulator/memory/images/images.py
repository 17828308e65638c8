"""Common part of texture and surface instructions."""

from typing import ClassVar

import numpy as np

from kernels.arguments.texture import Surface, Texture, described

from ...core.geometry import Flat, Lanes, Mask, as_mask
from ...isa import DTYPES
from ...isa.memory import images
from ..event import ADDRESS_SPACE, AccessEvent, BadAccess, LaneAddressList
from ..memories import AddressSpaces
from ..site import Site
from ..storage.image_handles import HANDLES, Picture
from ..storage.spaces import Allocation
from ..storage.word_ops import unique


class ImageAccess:
    """A texture or surface instruction bound to a launch; generated code calls it.

    Attributes:
        made: Required object type: ``Texture`` or ``Surface``.
    """

    made: ClassVar[type[Texture] | type[Surface]] = Texture

    def __init__(self, site: Site, memories: AddressSpaces) -> None:
        self.site, self.memories, self.shape = site, memories, images.shape(site.instruction)
        self.type, self.count = site.instruction.types[-1], site.count

    def __call__(self, mask: Mask | None, handles: Lanes, *given: Lanes) -> Lanes | tuple[Lanes]:
        """Execute the instruction; return an array for each element, or a single array."""
        g = self.memories.geometry
        on = g.full(as_mask(mask))
        thread, column = np.nonzero(on)
        asked = g.full(handles)[thread, column]
        values = [g.full(value)[thread, column] for value in given]
        loads = self.site.access == "load"
        found = [np.zeros(on.shape, DTYPES[self.type]) for _ in range(self.count * loads)]
        for number in unique(asked).tolist():
            chosen = np.flatnonzero(asked == number)
            lanes = thread[chosen], column[chosen]
            home = self._home(number)
            if home is None:
                what = "a number that is no handle" if number else "the null handle"
                self.bad(ADDRESS_SPACE, lanes, None, number, f"{what}, {number:#x}")
                continue
            array, of = home
            if wrong := self.misused(of):
                text = f"{array.name}, {described(of)}, {wrong}"
                self.bad(ADDRESS_SPACE, lanes, array, 0, text)
                continue
            results = self.do(array, of, lanes, [value[chosen] for value in values])
            for into, result in zip(found, results, strict=True):
                into[lanes] = result.view(into.dtype)
        several = tuple(g.from_rows(one) for one in found)
        return several[0] if len(several) == 1 else several  # type: ignore[return-value]

    def _home(self, number: int) -> tuple[Allocation, Picture] | None:
        array = self.memories.allocations.get(number >> 8 & 0xFFFFFFFF)
        which = number & 0xFF
        known = number >> 52 == HANDLES >> 52 and array is not None
        if not known or array is None or which >= len(array.pictures):
            return None
        return array, array.pictures[which]

    def misused(self, of: Picture) -> str:
        """Return why an object does not support the instruction, if so."""
        if not isinstance(of, self.made):
            return f"as a {self.made.__name__.lower()}"
        axes, layered = self.shape.axes, self.shape.layered
        if axes and (axes, layered) != (len(of.sizes), bool(of.layered)):
            kind = f"a {'layered ' * layered}{axes}-D one"
            return f"as {kind}"
        return ""

    def do(
        self, array: Allocation, of: Picture, lanes: tuple[Flat, Flat], given: list[Flat]
    ) -> list[Flat]:
        """Execute the instruction for the lanes of one object."""
        sizes = (*of.sizes, 0, 0)[:3]
        width, height, depth = sizes
        query = next(m for m in self.site.instruction.modifiers if m in images.QUERIES)
        if isinstance(of, Texture):  # as an H200 says it
            height = max(height, 1)
        if of.layers:
            height, depth = (of.layers, 0) if len(of.sizes) == 1 else (height, of.layers)
        number = {"width": width, "height": height, "depth": depth}[query]
        return [np.full(len(lanes[0]), number, np.int32)]

    # -- events --------------------------------------------------------------------

    def notify(
        self, array: Allocation, lanes: tuple[Flat, Flat], places: Flat,
        values: tuple[Flat, ...] | None, inside: Flat | None = None, site: Site | None = None,
    ) -> None:  # fmt: skip
        """Dispatch accesses; ``places``: byte addresses, one row for each lane ``inside``."""
        g = self.memories.geometry
        if not len(lanes[0]):
            return
        mask = np.zeros((g.threads, g.columns), bool)
        mask[lanes] = True
        places = places.reshape(len(lanes[0]), -1)
        thread, column = (np.repeat(one, places.shape[1]) for one in lanes)
        where = LaneAddressList(thread, column, places.reshape(-1))
        if inside is not None:
            on = inside.reshape(-1)
            where = LaneAddressList(thread[on], column[on], where.address[on])
            values = values and tuple(value[on] for value in values)
        event = AccessEvent(
            site or self.site, "global", where, g.from_rows(mask), False, array, values
        )
        for callback in self.memories.access_callbacks:
            callback(event)

    def bad(
        self, kind: str, lanes: tuple[Flat, Flat], home: Allocation | None, at: int, what: str
    ) -> None:
        """Report an invalid operation of some lanes."""
        g = self.memories.geometry
        column = int(lanes[1].min())
        thread = int(lanes[0][lanes[1] == column].min())
        place, count = g.place(thread, int(g.blocks[column])), len(lanes[0])
        bad = BadAccess(kind, self.site, at, home, *place, count, what)
        for callback in self.memories.bad_access_callbacks:
            callback(bad)


def texel_numbers(of: Picture, axes: list[Flat], layer: Flat | None) -> Flat:
    """Return the index of texels in the array, from coordinates with x first."""
    number = np.zeros_like(axes[0]) if layer is None else layer
    if not isinstance(of, Texture) or not of.row:
        for axis, size in zip(reversed(axes), reversed(of.sizes), strict=True):
            number = number * size + axis
    else:
        number = axes[1] * of.row + axes[0]
    return number + of.start if isinstance(of, Texture) and of.start else number


def layers(of: Picture, given: list[Flat], clamped: bool = True) -> Flat | None:
    """Return the layer named by the first value, if any; negative ones are beyond the last."""
    if not of.layers:
        return None
    layer = given.pop(0).view(np.uint32).astype(np.int64)
    return np.minimum(layer, of.layers - 1) if clamped else layer

"""Elements on which threads race, and the values that they store, as reports print them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from kernels.host.host_arguments import element_word
from kernels.source.element_types import is_structure, vector_of

from ...isa import DTYPES
from ...memory.site import Granules, Site
from ...memory.storage.layout import Layout
from ...races.accesses import SHARED
from ...races.shadow.stored_values import UNKNOWN_BITS
from .array_shapes import Shapes
from .naming import place_at


class RacePlaces:
    """Names racing elements by their array's shape.

    Args:
        layout: The program's variables.
        shapes: Returns the shapes of the launch's arrays.
        granules: Bytes of a location.
    """

    def __init__(self, layout: Layout, shapes: Callable[[], Shapes], granules: Granules) -> None:
        self._layout, self._make, self._granules = layout, shapes, granules

    @functools.cached_property
    def _shapes(self) -> Shapes:
        return self._make()

    def element(self, name: str, array: int, at: int, site: Site) -> str:
        """Return ``tile[3][0]`` for a byte of an array; ``array``: its number, or ``SHARED``."""
        shapes = self._shapes
        if array == SHARED:
            return place_at(self._layout, shapes, "shared", at, site)[2]
        return name + shapes.place(name, array, at, site.size)

    def value(self, name: str, array: int, bits: int, site: Site) -> str:
        """Return the value of the bits that a site stores in an element; empty if unknown.

        Compilers copy vectors and structures as unsigned words. Such a word has the element type
        that the source declares for the array; if that is not known, its value is not, either.
        """
        granule = self._granules.shared if array == SHARED else self._granules.array
        if bits == UNKNOWN_BITS or site.size != granule:
            return ""
        kind = DTYPES[site.type]
        if site.type[0] in "bu":
            declared = self._shapes.element(name, array == SHARED)
            element = element_word(vector_of(declared)[0])
            if element == f"f{8 * site.size}":
                kind = np.dtype(f"f{site.size}")
            elif site.type[0] == "b" and site.size > 1:
                return f"{bits:#x}"
            elif is_structure(declared) or (site.count > 1 and element[1:] != f"{8 * site.size}"):
                return ""
        value = np.array(bits, f"u{site.size}").view(kind)
        return str(value[()])

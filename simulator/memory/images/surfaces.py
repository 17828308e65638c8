"""Surface loads, stores and reductions (PTX ISA, "Surface Instructions")."""

import numpy as np

from kernels.arguments.texture import Surface

from ...core.geometry import Flat
from ...isa import DTYPES
from ...isa.memory import images
from .. import atomics
from ..event import MISALIGNED, OUT_OF_BOUNDS, READ_ONLY
from ..storage.image_handles import Picture
from ..storage.spaces import Allocation
from .images import ImageAccess, layers, texel_numbers


class SurfaceQuery(ImageAccess):
    """The instruction ``suq``."""

    made = Surface


class SurfaceAccess(ImageAccess):
    """``suld``, ``sust`` or ``sured``, bound to a launch."""

    made = Surface

    def do(
        self, array: Allocation, of: Picture, lanes: tuple[Flat, Flat], given: list[Flat]
    ) -> list[Flat]:
        """See ``ImageAccess``; ``given``: coordinates (x in bytes) and stored values."""
        ins = self.site.instruction
        axes = self.shape.axes
        layer = layers(of, given, clamped=False)
        where, stored = [x.astype(np.int64) for x in given[:axes]], given[axes:]
        texel = of.array.dtype.itemsize * of.channels
        formatted = ins.has("p")
        size = texel if formatted else self.site.nbytes
        if formatted:
            where[0] = where[0] * texel
        wrong = where[0] % size != 0
        if wrong.any():
            some = lanes[0][wrong], lanes[1][wrong]
            text = f"byte {where[0][wrong][0]} of a row of {array.name}"
            self.bad(MISALIGNED, some, array, 0, text)
        inside = np.ones(len(wrong), bool)
        last = [of.sizes[0] * texel - size, *(n - 1 for n in of.sizes[1:])]
        for axis, end in zip(where, last, strict=True):
            inside &= (axis >= 0) & (axis <= end)
        if layer is not None:
            inside &= layer < of.layers
        if ins.has("clamp"):
            where = [np.clip(axis, 0, max(end, 0)) for axis, end in zip(where, last, strict=True)]
            layer = None if layer is None else np.minimum(layer, of.layers - 1)
            inside[:] = last[0] >= 0
        elif ins.has("trap") and not inside.all():
            self._outside(array, of, lanes, [*where, *([] if layer is None else [layer])], ~inside)
        good = np.flatnonzero(inside & ~wrong)
        first = [where[0][good] // texel, *(axis[good] for axis in where[1:])]
        number = texel_numbers(of, first, None if layer is None else layer[good])
        at = number * texel + where[0][good] % texel
        some = lanes[0][good], lanes[1][good]
        return self._access(array, of, (lanes[0].size, good), some, at, [s[good] for s in stored])

    def _outside(
        self, array: Allocation, of: Picture, lanes: tuple[Flat, Flat], where: list[Flat], bad: Flat
    ) -> None:
        first = int(np.flatnonzero(bad)[0])
        place = ", ".join(str(int(axis[first])) for axis in where)
        extent = " x ".join(map(str, of.sizes))
        layers = f", {of.layers} layers" if of.layers else ""
        width = of.array.dtype.itemsize * of.channels
        text = f"({place}) of {array.name}, which has {extent} texels of {width} bytes{layers}"
        self.bad(OUT_OF_BOUNDS, (lanes[0][bad], lanes[1][bad]), array, 0, text + " (x in bytes)")

    def _access(
        self, array: Allocation, of: Picture, of_all: tuple[int, Flat], lanes: tuple[Flat, Flat],
        at: Flat, stored: list[Flat],
    ) -> list[Flat]:  # fmt: skip
        """Read or write; ``at``: byte offsets in the array."""
        dtype, memories = DTYPES[self.type], self.memories
        count, good = of_all
        if self.site.access == "load":
            self.notify(array, lanes, array.base + at, None)
            found = np.zeros((count, self.count * dtype.itemsize), np.uint8)
            steps = np.arange(found.shape[1])
            found[good] = array.buffer[at[:, None] + steps]
            return [part.copy() for part in found.view(dtype).T]
        if not array.writable:
            if len(good):
                self.bad(READ_ONLY, lanes, array, 0, f"{array.name}, which is read-only")
            return []
        if not at.size:
            return []
        if self.site.access == "atomic":
            return self._reduce(array, lanes, at, stored[0])
        if self.site.instruction.has("p"):
            raw = _formatted(stored, of)
            values: tuple[Flat, ...] = (raw.reshape(-1),)
            self.notify(array, lanes, (array.base + at)[:, None] + np.arange(raw.shape[1]), values)
        else:
            raw = np.stack([value.astype(dtype) for value in stored], -1).view(np.uint8)
            self.notify(array, lanes, array.base + at, tuple(stored))
        array.change()
        array.buffer[at[:, None] + np.arange(raw.shape[1])] = raw
        memories.writes += bool(len(good))
        return []

    def _reduce(
        self, array: Allocation, lanes: tuple[Flat, Flat], at: Flat, value: Flat
    ) -> list[Flat]:
        array.change()
        view = array.view(self.type, 1)

        def write(places: Flat, values: Flat) -> None:
            view[places] = values

        operation = images.operation(self.site.instruction)
        where = at // self.site.size
        atomics.apply(
            operation, self.type, where, (value,), view.__getitem__, write, is_global=True
        )
        self.notify(array, lanes, array.base + at, (value,))
        self.memories.writes += bool(len(at))
        return []


def _formatted(stored: list[Flat], of: Picture) -> Flat:
    """Convert words to texel bytes: floats are truncated to halves, integers clamped."""
    dtype = of.array.dtype
    words = np.zeros((len(stored[0]), of.channels), np.uint32)
    for channel, value in enumerate(stored[: of.channels]):
        words[:, channel] = value.view(np.uint32)
    if dtype.itemsize == 4:
        made: Flat = words
    elif dtype.kind == "f":
        made = _halves(words.view(np.float32))
    else:
        info = np.iinfo(dtype)
        values = words.view(np.int32) if dtype.kind == "i" else words
        made = np.clip(values, info.min, info.max).astype(dtype)
    return np.ascontiguousarray(made).view(np.uint8)


def _halves(values: Flat) -> Flat:
    """Truncate floats to halves, with saturation, as an H200 stores them."""
    near = values.astype(np.float16)
    far = np.abs(near.astype(np.float32)) > np.abs(values)
    near = np.where(far, np.nextafter(near, np.float16(0)), near)
    return np.where(np.isinf(near), np.copysign(np.finfo(np.float16).max, near), near)

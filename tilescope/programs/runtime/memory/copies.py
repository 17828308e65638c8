"""``MemoryCopy`` and ``MemoryFill``: copies and fills of bytes, rows and boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.core.geometry import Flat
from simulator.host_order import Stream
from simulator.observe.checks.array_footprint import ArrayFootprint

from ..errors import INVALID_VALUE, SUCCESS
from ..work import MEMCPY, MEMSET, StreamWork

TO_DEVICE, TO_HOST, BETWEEN, DEFAULT = 1, 2, 3, 4
"""Of ``cudaMemcpyKind``."""
_LARGEST = 1 << 40
"""Bytes of a box that no copy has."""


@dataclass(frozen=True)
class Box:
    """Bytes in rows and slices from an address on; pitches are those between them, in bytes."""

    address: int
    pitch: int = 0
    slice: int = 0

    def moved(self, address: int) -> Box:
        """Return the same box elsewhere."""
        return Box(address, self.pitch, self.slice)


@dataclass(frozen=True)
class Extent:
    """Extents of a box: bytes of a row, rows of a slice, slices."""

    width: int
    height: int = 1
    depth: int = 1

    @property
    def nbytes(self) -> int:
        """Bytes that are copied."""
        return self.width * self.height * self.depth

    def span(self, box: Box) -> int:
        """Return bytes from the first one to behind the last one."""
        rows = (self.height - 1) * box.pitch if self.height > 1 else 0
        return (self.depth - 1) * box.slice * (self.depth > 1) + rows + self.width

    def is_dense(self, box: Box) -> bool:
        """Whether the box has no gaps."""
        return self.span(box) == self.nbytes

    def rows(self, box: Box) -> list[int]:
        """Return the address of each row."""
        return [
            box.address + z * box.slice + y * box.pitch
            for z in range(self.depth)
            for y in range(self.height)
        ]


@dataclass
class MemoryCopy(StreamWork):
    """A copy between the host and the device, or inside of one.

    Attributes:
        call: The function's name, for reports.
        to: Destination; ``given``: source.
        kind: A ``cudaMemcpyKind``.
    """

    call: str
    to: Box
    given: Box
    extent: Extent
    kind: int
    node_type: ClassVar[int] = MEMCPY

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        extent, process = self.extent, runtime.process
        if not extent.nbytes:
            return SUCCESS
        if extent.nbytes > _LARGEST:
            runtime.checks.bad_copy(self.source, self.call, f"{extent.nbytes:,} bytes")
            return INVALID_VALUE
        sides = _find(runtime, self, self.to, extent), _find(runtime, self, self.given, extent)
        for side, box, what in zip(sides, (self.to, self.given), _SIDES, strict=True):
            if side is None and _is_wrong(runtime, self, box, extent, what):
                return INVALID_VALUE
        if self._goes_wrong_way(runtime):
            return INVALID_VALUE
        target, source = sides
        some = (target, "its destination", "store"), (source, "its source", "load")
        touched = [ArrayFootprint.whole(*of) for of in some if of[0] is not None]
        runtime.machine.enqueue(queue, self.call, self.source, touched)
        if waits:
            queue.synchronize()
        if target is None:
            content = _read(process, self.given, extent) if source is None else source
            if source is not None:
                runtime.checks.host_unset(self.source, self.call, source)
            _write(process, self.to, extent, content)
        elif source is None:
            _read_into(target, process, self.given, extent)
        else:
            runtime.machine.move(target, source)
        return SUCCESS

    def _goes_wrong_way(self, runtime: Any) -> bool:
        """Report a direction that is another one than the addresses say."""
        to, given = (runtime.device.find(box.address) for box in (self.to, self.given))
        of_device = [
            runtime.device.bytes_at(box.address, 0) is not None for box in (self.to, self.given)
        ]
        wrong = ""
        if self.kind == TO_HOST and to is not None and to.kind == "device":
            wrong = "cudaMemcpyDeviceToHost, but the destination is memory of the device"
        elif self.kind == TO_DEVICE and given is not None and given.kind == "device":
            wrong = "cudaMemcpyHostToDevice, but the source is memory of the device"
        elif self.kind in (TO_DEVICE, BETWEEN) and not of_device[0]:
            wrong = "to the device, but the destination is memory of the host"
        elif self.kind in (TO_HOST, BETWEEN) and not of_device[1]:
            wrong = "from the device, but the source is memory of the host"
        if wrong:
            runtime.checks.bad_copy(self.source, self.call, wrong)
        return bool(wrong)


@dataclass
class MemoryFill(StreamWork):
    """A fill of device memory with one value.

    Attributes:
        call: The function's name, for reports.
        to: What is filled.
        extent: Its extents; ``value``: the bytes of one element, 1, 2 or 4.
    """

    call: str
    to: Box
    extent: Extent
    value: bytes
    node_type: ClassVar[int] = MEMSET

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        if not self.extent.nbytes:
            return SUCCESS
        target = _find(runtime, self, self.to, self.extent)
        if target is None:
            if not _is_wrong(runtime, self, self.to, self.extent, _SIDES[0]):
                text = "the destination is no device memory"
                runtime.checks.bad_copy(self.source, self.call, text)
            return INVALID_VALUE
        touched = [ArrayFootprint.whole(target, "its destination", "store")]
        runtime.machine.enqueue(queue, self.call, self.source, touched)
        if waits:
            queue.synchronize()
        value = np.frombuffer(self.value, np.uint8)
        target[...] = np.tile(value, self.extent.width // value.size) if value.size > 1 else value
        return SUCCESS


_SIDES = "the destination", "the source"


def _find(runtime: Any, work: MemoryCopy | MemoryFill, box: Box, extent: Extent) -> Flat | None:
    """Return a box of the device's memory, (depth, height, width); ``None`` if it is none."""
    if extent.span(box) > _LARGEST:
        return None
    found: Flat | None = runtime.device.bytes_at(box.address, extent.span(box))
    if found is None:
        return None
    shape = extent.depth, extent.height, extent.width
    if extent.is_dense(box):
        return found.reshape(shape)
    view = np.ndarray(shape, np.uint8, found, strides=(box.slice, box.pitch, 1))
    own = getattr(found, "of_its_memory", None)
    return own(view) if own else view


def _is_wrong(
    runtime: Any, work: MemoryCopy | MemoryFill, box: Box, extent: Extent, what: str
) -> bool:
    """Report an address of the device where the box does not fit; else it is the host's."""
    span = extent.span(box)
    return bool(
        runtime.checks.misfit(runtime.device, work.source, work.call, box.address, span, what)
    )


def _read(process: Any, box: Box, extent: Extent) -> Any:
    """Return the bytes of a box of the host's memory, (depth, height, width)."""
    shape = extent.depth, extent.height, extent.width
    if extent.is_dense(box):
        return process.read_array(box.address, extent.nbytes).reshape(shape)
    rows = [process.read_array(at, extent.width) for at in extent.rows(box)]
    return np.concatenate(rows).reshape(shape)


def _read_into(target: Flat, process: Any, box: Box, extent: Extent) -> None:
    """Fill memory of the device with a box of the host's memory, in one pass if both are dense."""
    if not (target.flags.c_contiguous and extent.is_dense(box)):
        target[...] = _read(process, box, extent)
        return
    process.read_into(box.address, np.asarray(target).reshape(-1))
    missing = getattr(target, "missing", None)
    if missing is not None:
        missing[...] = 0


def _write(process: Any, box: Box, extent: Extent, content: Any) -> None:
    """Replace a box of the host's memory; bytes between its rows stay as they are."""
    if extent.is_dense(box):
        process.write(box.address, np.ascontiguousarray(content).reshape(-1))
        return
    for at, row in zip(extent.rows(box), content.reshape(-1, extent.width), strict=True):
        process.write(at, np.ascontiguousarray(row))

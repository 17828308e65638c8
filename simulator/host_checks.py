"""Mistakes of a program's host code: what it gives to launches and copies, and what it leaves.

Each is found where the program calls the runtime, by the line of the call.
"""

from collections.abc import Iterator

import numpy as np

from kernels.arguments.uninitialised import missing_of

from .core.geometry import Flat
from .hazards.hazard import Hazard, Participant, Source
from .hazards.kinds import (
    BAD_COPY,
    HOST_POINTER,
    HOST_UNSET,
    LAUNCH_ERROR,
    LEAK,
    USE_AFTER_FREE,
    HazardKind,
)
from .memory.storage.device import Device, DeviceAllocation

_MAX_PADDING = 16
"""Bytes of padding are fewer: the largest alignment of CUDA's own types."""


class HostChecks:
    """The findings of one program: each kind once for a line, with how often."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Source], Hazard] = {}
        self._padding_is_noted = False

    def hazards(self) -> Iterator[Hazard]:
        """Yield all of them, in the order in which they were found first."""
        yield from self._found.values()

    def bad_pointers(
        self, source: Source, call: str, hazards: list[Hazard], suspects: list[tuple[str, str]]
    ) -> tuple[list[Hazard], bool]:
        """Explain a launch's bad accesses by parameters that point to no memory of the device.

        Args:
            source: The line of the launch.
            call: What the launch is called in reports.
            hazards: The launch's.
            suspects: Parameters by name, with the freed memory that each points into; ``""``: it is
                an address of the host's own memory.

        Returns:
            The hazards that are left, and whether one of the host's addresses was used.
        """
        is_host = False
        for parameter, freed in suspects:
            follows = [h for h in hazards if h.row.by_address and h.variable == freed]
            if not follows:
                continue  # the kernel did not use it
            hazards = [h for h in hazards if h not in follows]
            if freed:
                self.use_after_free(source, call, parameter, freed)
            else:
                is_host = True
                self._add(HOST_POINTER, source, who=call, place=parameter)
        return hazards, is_host

    def host_pointer(self, source: Source, call: str, parameter: str) -> None:
        """Report a library call with a host address in place of a device address."""
        self._add(HOST_POINTER, source, who=call, place=parameter)

    def use_after_free(self, source: Source, call: str, parameter: str, freed: str) -> None:
        """Report a launch or copy with an address of memory that was ``freed`` at some line."""
        self._add(USE_AFTER_FREE, source, who=call, place=parameter, how=freed)

    def bad_copy(self, source: Source, call: str, problem: str) -> None:
        """Report a copy or fill that does not fit its memory."""
        self._add(BAD_COPY, source, who=call, how=problem)

    def misfit(
        self, device: Device, source: Source, call: str, address: int, nbytes: int, what: str
    ) -> bool:
        """Whether bytes at an address of the device do not fit its memory; report it.

        ``what``: ``the destination``, or ``the source``. An address of the host's is none of them.
        """
        if freed := device.freed_at(address):
            self.use_after_free(source, call, what, freed)
            return True
        whole = device.find(address)
        if whole is None:
            return False
        past = address + nbytes - whole.address - whole.nbytes
        text = f"{nbytes:,} bytes of {what} end {past:,} bytes past {described(whole)}"
        self.bad_copy(source, call, text)
        return True

    def launch_error(self, source: Source, call: str, problem: str) -> None:
        """Report a launch that a GPU would refuse."""
        self._add(LAUNCH_ERROR, source, who=call, how=problem)

    def leak(self, allocations: list[tuple[str, int]]) -> None:
        """Allocations, ``(place, bytes)``, that live when the program ends."""
        if allocations:
            total = sum(nbytes for _, nbytes in allocations)
            word = f"{len(allocations):,} allocation{'s' * (len(allocations) != 1)}"
            places = dict.fromkeys(place for place, _ in allocations if place)
            notes = tuple(f"allocated at {place}" for place in places)
            self._add(LEAK, Source("", 0), notes[:5], value=total, word=word)

    def host_unset(self, source: Source, call: str, copied: Flat) -> None:
        """Report a copy of uninitialised bytes to the host, which may be padding."""
        missing = missing_of(copied)
        count = 0 if missing is None else int(np.count_nonzero(missing))
        if count:
            is_noted = not self._padding_is_noted and _may_be_padding(missing)
            notes = ("padding between members of structures is not written either",) * is_noted
            self._padding_is_noted |= is_noted
            extent = f"{copied.nbytes:,}"
            self._add(HOST_UNSET, source, notes, who=call, value=count, extent=extent)

    def _add(
        self, row: HazardKind, source: Source, notes: tuple[str, ...] = (), **words: object
    ) -> None:
        message = row.message.format(**words)
        key = row.name, message, source
        if key in self._found:
            self._found[key].count += 1
            return
        where = (Participant("call", source, str(words.get("who", "")), 0),) if source.file else ()
        self._found[key] = Hazard(row.name, message, row.severity, involved=where, notes=notes)


def described(one: DeviceAllocation) -> str:
    """``an allocation of 400 bytes (made at main.cu:12)``."""
    return f"an allocation of {one.nbytes:,} bytes{f' (made at {one.place})' if one.place else ''}"


def _may_be_padding(missing: Flat) -> bool:
    """Whether the uninitialised bytes of a copy, flagged, are gaps as short as padding."""
    edges = np.flatnonzero(np.diff(missing.astype(np.int8), prepend=0, append=0))
    longest = (edges[1::2] - edges[::2]).max()
    return bool(longest < min(_MAX_PADDING, len(missing)))

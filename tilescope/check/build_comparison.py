"""Comparison of a kernel's builds: their hazards and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernels import Kernel, KernelError
from kernels.arguments.argument_copies import arrays_of
from kernels.arguments.convert import convert
from kernels.debug.types import Bits
from kernels.library import Agreement
from simulator import Hazard, Run, SimulatorError
from simulator.build_results import (
    DifferingElements,
    Padding,
    ResultArray,
    builds_differ,
    has_atomics,
    ordered_by_atomics,
    perturbed,
    reads_clocks,
    unequal,
)
from simulator.observe.observers import chosen

from .builds import merge, only_in_source
from .launcher import Launcher
from .policy import set_aside
from .verification_runs import LIGHT, SCHEDULES

_SEEDS = range(2, 6)
"""Further schedules for kernels with atomics."""
_MAX_COMPARED = 4 << 30
"""Bytes of arrays that are kept from one build to the next."""
TOO_LARGE = "the results of the two builds are not compared: their arrays have more than 4 GiB"
NOT_COMPARED = "the results of the two builds are not compared: interrupted"
CLOCKS = "the results of the two builds are not compared: the kernel reads a clock"
_EXPLAIN = ("races", "barriers", "memory", "uninitialised", "")
"""The checks whose errors may be why two builds leave other results; "": of no check."""
_DEVICE, _SOURCE = "device", "source"


@dataclasses.dataclass
class Builds:
    """Builds of a target that ran, and their results.

    Attributes:
        kernels, results: Kernel of each build, and its arrays after the run.
        members: Bits of arrays of structures that are not padding, by the array's number.
        note: Why results are not compared.
    """

    launcher: Launcher
    kernels: dict[str, Kernel] = dataclasses.field(default_factory=dict)
    results: dict[str, list[ResultArray]] = dataclasses.field(default_factory=dict)
    members: dict[int, Bits] = dataclasses.field(default_factory=dict)
    note: str = ""

    def add(self, kernel: Kernel, args: Sequence[Any], symbols: Mapping[str, Any]) -> None:
        """Add the results of a build."""
        self.kernels[kernel.build] = kernel
        if kernel.origin is None:
            return
        arrays = _results(kernel, args, symbols)
        if sum(one.array.nbytes for one in arrays) > _MAX_COMPARED:
            self.note = TOO_LARGE
        else:
            self.results[kernel.build] = arrays

    def merged(
        self, runs: Sequence[Run], results: Sequence[tuple[str, Agreement]], explained: bool
    ) -> tuple[list[Hazard], int]:
        """Return the hazards of all builds, each once, including differing results.

        ``explained``: known or ignored hazards may explain a difference. Returns also the number of
        hazards that the baseline excludes.
        """
        hazards = merge(runs)
        light = all(run.counters.thread_instructions <= LIGHT for run in runs)
        if only_in_source(hazards) and _DEVICE in self.kernels and light:
            hazards = merge(runs, self._tried(runs))
        ended = any(hazard.row.is_endless for run in runs for hazard in run.hazards)
        if explained or ended or not {_DEVICE, _SOURCE} <= self.results.keys():
            return hazards, 0
        differing = self._unexplained()
        if not differing:
            return hazards, 0
        differ = builds_differ(differing, _by_reference(results))
        new, known = set_aside(self.launcher.policy, [differ], runs[0].kernel)
        return (_folded(hazards, differ) if new else hazards), known

    def _tried(self, runs: Sequence[Run]) -> list[Run]:
        """Run the device build under further schedules, until it shows every hazard."""
        tried: list[Run] = []
        for schedule in SCHEDULES:
            remaining = only_in_source(merge(runs, tried))
            if not remaining or schedule == self.launcher.schedule:
                continue
            needed = chosen(self.launcher.checks) & {hazard.row.check for hazard in remaining}
            try:
                kernel = self.kernels[_DEVICE]
                tried.append(self.launcher.observe(kernel, needed or "none", schedule)[0])
            except SimulatorError:
                continue
        return tried

    def _unexplained(self) -> list[DifferingElements]:
        """Return differing elements that neither schedules nor contraction explain."""
        one, other = self.results[_DEVICE], self.results[_SOURCE]
        found = self._differing(one, other)
        if not found:
            return []
        self._leave_padding_out(found, other)
        found = self._differing(one, other)
        if any(map(reads_clocks, self.kernels.values())):
            self.note = CLOCKS
            return []
        self._without(found, self._contracted(), other)
        odd = perturbed(self.kernels[_SOURCE]) if found else None
        if odd and (again := self._again(odd, self.launcher.schedule)):
            _leave_out(found, self._differing(other, again))
        if not found or any(map(ordered_by_atomics, self.kernels.values())):
            return []
        atomics = any(map(has_atomics, self.kernels.values()))
        for schedule in (*SCHEDULES, *(_SEEDS if atomics else ())):
            for build in (_DEVICE, _SOURCE) if schedule != self.launcher.schedule else ():
                again = self._again(self.kernels[build], schedule)
                if again is None:
                    return []
                _leave_out(found, self._differing(self.results[build], again))
            if not found:
                return []
        return [
            DifferingElements(one[i].name, {_DEVICE: one[i].array, _SOURCE: other[i].array}, where)
            for i, where in found.items()
        ]

    def _differing(
        self, one: Sequence[ResultArray], other: Sequence[ResultArray]
    ) -> dict[int, Any]:
        """Return the differing elements, by the array's number."""
        pairs = enumerate(zip(one, other, strict=True))
        found = {i: unequal(a, b, self.members.get(i)) for i, (a, b) in pairs}
        return {i: where for i, where in found.items() if where is not None}

    def _leave_padding_out(self, numbers: Iterable[int], arrays: Sequence[ResultArray]) -> None:
        """Determine the member bits of some arrays."""
        target = self.launcher.target
        padding = Padding(
            self.kernels[_SOURCE], target.grid, target.block, target.args, target.shared_bytes,
            symbols=self.launcher.symbols(), **target.how,
        )  # fmt: skip
        known = len(convert(self.kernels[_SOURCE], target.args).arrays)
        for number in numbers:
            members = (
                padding.members(number, arrays[number].array.nbytes) if number < known else None
            )
            if members is not None:
                self.members[number] = members

    def _without(
        self, found: dict[int, Any], again: list[ResultArray] | None, other: list[ResultArray]
    ) -> None:
        """Exclude elements that are equal in another run."""
        if again is not None:
            still = self._differing(again, other)
            _leave_out(found, {place: ~still.get(place, np.False_) for place in found})

    def _contracted(self) -> list[ResultArray] | None:
        """Return results of the device build without fused multiply-adds.

        ``None``: there are none.
        """
        origin = self.kernels[_DEVICE].origin
        assert origin is not None
        own = [o for o in origin.options if "fmad" not in o]
        options = [*own, "--fmad=false"]
        try:
            kernel = Kernel.from_cuda(origin.source, origin.entry, origin.arch, options)
        except KernelError:
            return None
        return self._again(kernel, self.launcher.schedule)

    def _again(self, kernel: Kernel, schedule: str | int) -> list[ResultArray] | None:
        """Return the results of a run without checks; ``None``: it does not end."""
        symbols = self.launcher.symbols()
        try:
            run, args = self.launcher.observe(kernel, "none", schedule, symbols=symbols)
        except SimulatorError:
            return None
        if any(hazard.row.is_endless for hazard in run.hazards):
            return None
        return _results(kernel, args, symbols)


def _results(kernel: Kernel, args: Sequence[Any], symbols: Mapping[str, Any]) -> list[ResultArray]:
    """Return the arrays of a launch by name, arguments in their order."""
    arguments = convert(kernel, args, kernel.labels())
    found = [ResultArray(*pair) for pair in zip(arguments.labels, arguments.arrays, strict=True)]
    return found + [
        ResultArray(n, array) for n, one in symbols.items() for array in arrays_of([one])
    ]


def _leave_out(found: dict[int, Any], elements: Mapping[int, Any]) -> None:
    """Exclude explained elements of arrays."""
    for place in found.keys() & elements.keys():
        found[place] = found[place] & ~elements[place]
        if not found[place].any():
            del found[place]


def _by_reference(results: Sequence[tuple[str, Agreement]]) -> list[str]:
    """Return which build is right, if a reference decides."""
    builds = list(dict.fromkeys(build for build, _ in results))
    right = [b for b in builds if all(a.within for build, a in results if build == b)]
    if not builds:
        return ["give --expect or --reference to see which build is right"]
    if not right:
        return ["by the reference neither build is right"]
    return [f"by the reference the {' and the '.join(right)} build is right"]


def _folded(hazards: list[Hazard], differ: Hazard) -> list[Hazard]:
    """Fold the difference beneath the error that explains it; else list it with the warnings."""
    may = [h for h in hazards if h.row.check in _EXPLAIN and not h.row.of_machine_code]
    errors = [h for h in may if h.severity == "error"]
    cause = next(iter(errors), None)
    if cause is not None:
        folded = dataclasses.replace(cause, follows=(*cause.follows, differ))
        return [folded if h is cause else h for h in hazards]
    lines = dict.fromkeys(str(s) for h in may for s in h.sources)
    if lines:
        differ.notes += (f"may follow from the warnings below: {', '.join(lines)}",)
    return [differ, *hazards]

"""Demonstration of a race: two schedules under which a kernel computes different bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.source.signatures import parameter_label
from simulator import Run

from .launcher import Launcher

SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", *range(32))
"""What is tried, in this order; the first is what the others are held against."""


@dataclass(frozen=True)
class Difference:
    """A difference between outputs.

    Attributes:
        array: Name of the parameter.
        index: Index of the first differing element.
        first, second: The schedules, or ``reference`` and ``every schedule``.
        values: The element under each.
        reference: The right value of the element, if there is a reference.
        count: Number of differing elements.
        elements: Number of elements of the array.
        build: The build that ran.
    """

    array: str
    index: tuple[int, ...]
    first: str
    second: str
    values: tuple[str, str]
    reference: str | None
    count: int
    elements: int
    build: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.__dict__.items()
        }


def demonstrate(launcher: Launcher, kernel: Kernel) -> Difference | None:
    """Return the first difference of a schedule from lockstep, or from the reference.

    A stalled run has incomplete outputs and is no example.
    """
    run, base = launcher.observe(kernel, "none", SCHEDULES[0])
    if _stuck(run):
        return _against_reference(launcher, kernel, base, str(SCHEDULES[0]))
    for schedule in SCHEDULES[1:]:
        run, args = launcher.observe(kernel, "none", schedule)
        if _stuck(run):
            continue
        for place, (one, other) in enumerate(zip(base, args, strict=True)):
            if isinstance(one, np.ndarray) and (wrong := _bits_differ(one, other)).any():
                names = (str(SCHEDULES[0]), _name(schedule))
                return _difference(launcher, kernel, place, wrong, names, one, other)
    return _against_reference(launcher, kernel, base, "every schedule")


def _against_reference(
    launcher: Launcher, kernel: Kernel, args: list[Any], label: str
) -> Difference | None:
    """Compare with the reference, as all schedules may agree on a wrong result."""
    target = launcher.target
    if target.launch is None or target.expected is None:
        return None
    for name, place in target.launch.outputs.items():
        expected = target.expected[name]
        value, bound = np.broadcast_arrays(expected.value, expected.bound)
        got = np.asarray(args[place], np.float64)
        with np.errstate(invalid="ignore"):
            right = (got == value) | (np.isnan(got) & np.isnan(value)) | (abs(got - value) <= bound)
        if not right.all():
            names = ("reference", label)
            wanted = value.astype(args[place].dtype)
            return _difference(launcher, kernel, place, ~right, names, wanted, args[place])
    return None


def _stuck(run: Run) -> bool:
    return any(hazard.row.is_endless for hazard in run.hazards)


def _name(schedule: str | int) -> str:
    return schedule if isinstance(schedule, str) else f"seed {schedule}"


def _bits_differ(one: Any, other: Any) -> Any:
    """Return the elements that differ in any bit; NaNs are compared bitwise."""
    raw = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (one, other)]
    differing = (raw[0] != raw[1]).reshape(one.size, one.itemsize).any(axis=1)
    return differing.reshape(one.shape)


def _difference(
    launcher: Launcher, kernel: Kernel, place: int, wrong: Any, names: tuple[str, str],
    one: Any, other: Any,
) -> Difference:  # fmt: skip
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    label = parameter_label(kernel.labels(), place)
    return Difference(
        label, index, *names, (str(one[index]), str(other[index])),
        _wanted(launcher, place, index), int(wrong.sum()), int(wrong.size), kernel.build,
    )  # fmt: skip


def _wanted(launcher: Launcher, place: int, index: tuple[int, ...]) -> str | None:
    target = launcher.target
    if target.launch is None or target.expected is None:
        return None
    for name, at in target.launch.outputs.items():
        if at == place:
            array = target.args[place]
            value = np.broadcast_to(target.expected[name].value, array.shape)[index]
            return str(array.dtype.type(value))
    return None

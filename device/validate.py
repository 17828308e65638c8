"""Validation of a launch: NumPy reference, simulator and GPU, from copies of the same inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.arguments.argument_copies import arrays_of, copies
from kernels.library import Agreement, Expected, Launch
from kernels.machine_code.architecture import KNOWN
from kernels.source.signatures import parameter_label
from simulator.isa.architectures import MEASURED
from simulator.isa.memory.stack import STACK_BYTES
from simulator.memory.storage.heap import HEAP_BYTES

from .launch import Output, available, capability, launch
from .promises import unpromised

Reference = Callable[..., Mapping[int, Expected] | None]
"""Takes the launch's arguments (copies). It either changes its output arrays as the kernel
should, which gives errors but no bound to hold them to; or returns, by the place of the
argument, ``kernels.library.Expected``: float64 values and how far each element may be off."""


@dataclass(frozen=True)
class Comparison:
    """One array after the launch, on all machines.

    Attributes:
        name: Name of its parameter in the source, or its position.
        place: Position among the arguments, from 0.
        elements: Number of elements.
        equal: Number of elements with equal bits on simulator and device.
        max_ulp: Largest difference in units in the last place, for floats; NaN against a number
            counts as the largest possible.
        where: Index of the element that differs most, if any.
        values: That element on the simulator and on the device.
        simulator: Comparison of the simulator's array with the reference; ``None``: there is none
            for this array.
        device: Comparison of the device's array with the reference.
        bounded: Whether the reference gave an error bound.
    """

    name: str
    place: int
    elements: int
    equal: int
    max_ulp: int
    where: tuple[int, ...] | None
    values: tuple[Any, Any] | None
    simulator: Agreement | None
    device: Agreement | None
    bounded: bool

    @property
    def same(self) -> bool:
        """Whether simulator and device agree bit for bit."""
        return self.equal == self.elements

    @property
    def within(self) -> bool | None:
        """Whether both machines are within the error bound; ``None``: there is no bound."""
        if not self.bounded or self.simulator is None or self.device is None:
            return None
        return self.simulator.within and self.device.within

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "elements": self.elements,
            "equal": self.equal,
            "max_ulp": self.max_ulp,
            "where": list(self.where) if self.where is not None else None,
            "values": [str(value) for value in self.values] if self.values else None,
            "simulator": self.simulator.to_dict() if self.simulator else None,
            "device": self.device.to_dict() if self.device else None,
            "bounded": self.bounded,
            "within": self.within,
        }


@dataclass(frozen=True)
class Validation:
    """Result of ``validate``.

    Attributes:
        validated: Whether there is no error hazard, results are within the reference's bound (if
            any), and every array is bit for bit equal. Where PTX does not specify the bits, the
            bound decides.
        reason: Why the launch is not validated, in a sentence; else empty.
        unpromised: What leaves result bits unspecified, such as ``.approx``; empty if nothing does.
        comparisons: One for each writeable array.
        run: The simulator's result.
        output: The device's result; ``None`` if the kernel was not launched.
        simulated: The arguments after the simulation.
        launched: The arguments after the launch on the GPU.
    """

    validated: bool
    reason: str
    unpromised: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    run: simulator.Run
    output: Output | None
    simulated: tuple[Any, ...] = ()
    launched: tuple[Any, ...] = ()

    @property
    def bits_promised(self) -> bool:
        """Whether PTX specifies the result bits of all executed instructions."""
        return not self.unpromised

    @property
    def bit_for_bit(self) -> bool:
        """Whether the GPU ran and every array has the simulator's bits."""
        return self.output is not None and all(c.same for c in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        out = self.output
        return {
            "schema": 1,
            "validated": self.validated,
            "reason": self.reason,
            "bit_for_bit": self.bit_for_bit,
            "unpromised": list(self.unpromised),
            "kernel": self.run.kernel,
            "sha256": self.run.sha256,
            "grid": list(self.run.grid),
            "block": list(self.run.block),
            "device": out.device if out else None,
            "driver": out.driver if out else None,
            "arrays": [comparison.to_dict() for comparison in self.comparisons],
            "hazards": [hazard.to_dict() for hazard in self.run.hazards],
        }


def validate(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    reference: Reference | None = None,
    shared_bytes: int = 0,
    device: int = 0,
    jit_level: int | None = None,
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    cluster: int | Sequence[int] | None = None,
    stack_bytes: int = STACK_BYTES,
    heap_bytes: int = HEAP_BYTES,
) -> Validation:
    """Compare simulator, device and, if given, a NumPy reference.

    The simulator's hazard checks run first; a kernel with an error is not launched on the GPU and
    never validated. ``args`` are not modified. ``reference`` is called with copies of them: see
    ``Reference``. Other arguments are those of ``device.launch``; both machines execute the
    identical PTX.

    Raises:
        DeviceError: There is no GPU, or it failed.
        SimulatorError, TypeError, ValueError: As ``simulator.launch``.
    """
    simulated, launched = copies(args), copies(args)
    given = symbols or {}
    ours, theirs = (dict(zip(given, copies([*given.values()]), strict=True)) for _ in range(2))
    number = int(capability(device).replace(".", "")) if available()[0] else 0
    arch = number if number in KNOWN else None
    how: dict[str, Any] = {
        "cooperative": cooperative, "stack_bytes": stack_bytes, "heap_bytes": heap_bytes,
        "cluster": cluster,
    }  # fmt: skip
    run = simulator.launch(
        kernel, grid, block, simulated, shared_bytes, arch=arch, symbols=ours, **how
    )
    open_bits = unpromised(kernel.ptx, run.approximate and number not in MEASURED)
    errors = [h for h in run.hazards if h.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        reason = f"not launched: {errors[0].title}{more}"
        return Validation(False, reason, open_bits, (), run, None, tuple(simulated))
    output = launch(
        kernel, grid, block, launched, shared_bytes, device, jit_level, symbols=theirs, **how
    )
    expected, bounded = _expected(reference, args)
    names = list(kernel.adapter.given) if kernel.adapter else kernel.labels()
    comparisons: tuple[Comparison, ...] = ()
    observed: list[Any] = []
    for i, some in enumerate(zip(args, simulated, launched, strict=True)):
        name = parameter_label(names, i)
        rows = list(zip(*(arrays_of([arg]) for arg in some), strict=True))
        for j, (asked, one, other) in enumerate(rows):
            if asked.flags.writeable and not any(asked is before for before in observed):
                known = expected.get(i) if len(rows) == 1 else None
                called = name if len(rows) == 1 else f"{name}[{j}]"
                comparisons += (_compare(called, i, one, other, known, bounded),)
            observed.append(asked)
    comparisons += tuple(
        _compare(name, len(args) + i, ours[name], theirs[name], None, bounded)
        for i, name in enumerate(given)
    )
    reason = _reason(comparisons, open_bits)
    return Validation(
        not reason, reason, open_bits, comparisons, run, output, tuple(simulated), tuple(launched)
    )


def _reason(comparisons: Sequence[Comparison], open_bits: tuple[str, ...]) -> str:
    """Return why the launch is not validated; empty if it is."""
    for c in comparisons:
        for machine, agreement in (("simulator", c.simulator), ("device", c.device)):
            if c.bounded and agreement is not None and not agreement.within:
                return (
                    f"{c.name} of the {machine} is outside its error bound in "
                    f"{agreement.wrong:,} of {c.elements:,} elements"
                )
    different = [c for c in comparisons if not c.same]
    if different and not open_bits:
        worst = different[0]
        count = worst.elements - worst.equal
        return f"{count:,} {'element' if count == 1 else 'elements'} of {worst.name} " + (
            "differs" if count == 1 else "differ"
        )
    if any(c.within is None for c in different):
        return (
            f"bits differ where PTX promises none ({'; '.join(open_bits)}), and no bound is given"
        )
    return ""


def _expected(
    reference: Reference | None, args: Sequence[Any]
) -> tuple[Mapping[int, Expected], bool]:
    """Return the reference's arrays by position, and whether it has error bounds."""
    if reference is None:
        return {}, False
    given = copies(args)
    said = reference(*given)
    if said is not None:
        return said, True
    free = np.float64(np.inf)
    return {
        i: Expected(arg.astype(np.float64), free)
        for i, arg in enumerate(given)
        if isinstance(arg, np.ndarray) and arg.flags.writeable and arg.dtype.kind in "iuf"
    }, False


def _compare(
    name: str, place: int, ours: Any, theirs: Any, expected: Expected | None, bounded: bool
) -> Comparison:
    word = np.dtype(f"V{ours.dtype.itemsize}")
    same = np.ascontiguousarray(ours).reshape(-1).view(word) == np.ascontiguousarray(
        theirs
    ).reshape(-1).view(word)
    where: tuple[int, ...] | None = None
    values = None
    distance = 0
    if not same.all():
        worst = int(np.argmin(same))
        if ours.dtype.kind == "f":
            ulps = ulp_distance(ours.reshape(-1), theirs.reshape(-1))
            distance = int(ulps.max())
            worst = int(np.argmax(ulps)) if distance else worst
        where = tuple(int(i) for i in np.unravel_index(worst, ours.shape))
        values = ours[where], theirs[where]
    return Comparison(
        name, place, ours.size, int(np.count_nonzero(same)), distance, where, values,
        _agreement(name, ours, expected), _agreement(name, theirs, expected),
        bounded and expected is not None,
    )  # fmt: skip


def _agreement(name: str, found: Any, expected: Expected | None) -> Agreement | None:
    if expected is None or found.dtype.kind not in "iuf":
        return None
    launch = Launch((1,), (1,), [found], {name: 0}, lambda args: {})
    return launch.compare({name: expected})[0]


def ulp_distance(a: Any, b: Any) -> Any:
    """Return the distance of two float arrays in units in the last place, uint64.

    NaN against a number counts as 2**63.
    """
    bits = a.dtype.itemsize * 8

    def line(x: Any) -> Any:
        whole = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(np.int64)
        return np.where(whole < 0, -(2 ** (bits - 1)) - whole, whole)

    first, second = line(a), line(b)
    distance = np.abs(first.astype(np.float64) - second.astype(np.float64))
    far, farthest = np.uint64(2**62), np.uint64(2**63)
    exact = np.where(distance < 2**52, np.abs(first - second).astype(np.uint64), far)
    odd = np.isnan(a) != np.isnan(b)
    both = np.isnan(a) & np.isnan(b)
    return np.where(odd, farthest, np.where(both, np.uint64(0), exact))

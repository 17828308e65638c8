"""cuFFT by NumPy's transforms (cuFFT, "Data Layout", "Advanced Data Layout"; unnormalised)."""

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from .calls import CallFailedError, Compute, Library, LibraryCall, setting
from .handle_calls import hint, option_setter, version
from .numbers import C32, C64, F32, F64, NumberType

INVALID_PLAN, INVALID_TYPE, INVALID_VALUE, EXEC_FAILED = 1, 3, 4, 6
"""Of ``cufftResult``."""
LIBRARY = Library("cuFFT", EXEC_FAILED)
VERSION = 12000
_TYPES: dict[int, tuple[NumberType, NumberType]] = {
    0x2A: (F32, C32), 0x2C: (C32, F32), 0x29: (C32, C32), 0x6A: (F64, C64), 0x6C: (C64, F64),
    0x69: (C64, C64),
}  # fmt: skip
"""Of input and output, by ``cufftType``."""
_FORWARD = -1


@dataclass(frozen=True)
class BatchLayout:
    """Where the elements of a batch of transforms are.

    Attributes:
        extents: Of the storage along each axis; ``None``: without gaps.
        step: Elements between neighbours of the last axis.
        distance: Elements between transforms.
    """

    extents: tuple[int, ...] | None = None
    step: int = 1
    distance: int = 0

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the strides along the batch and each axis, for a transform's shape."""
        extents = self.extents or shape
        steps = [self.step]
        for extent in reversed(extents[1:]):
            steps.append(steps[-1] * extent)
        distance = self.distance if self.extents else math.prod(shape)
        return (distance, *reversed(steps))


@dataclass
class Plan:
    """A ``cufftHandle``: shape, type, batch and layouts of its transforms."""

    shape: tuple[int, ...] = ()
    kind: int = 0
    batch: int = 1
    given: BatchLayout = BatchLayout()
    made: BatchLayout = BatchLayout()
    stream: int = 0


def _plan(call: LibraryCall) -> Plan:
    found = call.runtime.libraries.plans.get(call["plan"])
    if not isinstance(found, Plan):
        raise CallFailedError(INVALID_PLAN)
    return found


def _new(call: LibraryCall) -> Plan:
    """Make a plan whose handle, an ``int``, goes to where the argument points."""
    plans, made = call.runtime.libraries.plans, Plan()
    number = max(plans, default=0) + 1
    plans[number] = made
    call.put("plan", number, 4)
    return made


def _fill(is_new: bool) -> Compute:
    """Fill in a plan from the arguments; ``is_new``: a plan that the call makes."""

    @setting
    def compute(call: LibraryCall) -> int | None:
        names = call.arguments
        if call["kind"] not in _TYPES:
            return INVALID_TYPE
        if "rank" in names:
            shape = _numbers(call, "n")
            layouts = [
                BatchLayout(_numbers(call, embed) if call[embed] else None, call[step], call[gap])
                for embed, step, gap in (("inembed", "istride", "idist"),
                                         ("onembed", "ostride", "odist"))
            ]  # fmt: skip
        else:
            shape = tuple(call[name] for name in ("nx", "ny", "nz") if name in names)
            layouts = [BatchLayout(), BatchLayout()]
        if min(shape, default=0) < 1 or not 1 <= len(shape) <= 3 or names.get("batch", 1) < 1:
            return INVALID_VALUE
        plan = _new(call) if is_new else _plan(call)
        plan.shape, plan.kind, plan.batch = shape, call["kind"], names.get("batch", 1)
        plan.given, plan.made = layouts
        if names.get("size"):
            call.put("size", 0)
        return None

    return compute


def _numbers(call: LibraryCall, name: str) -> tuple[int, ...]:
    rank = min(max(call["rank"], 0), 3)
    wide = call.name.endswith("64")
    raw = call.runtime.process.read(call[name], rank * (8 if wide else 4))
    return struct.unpack(f"<{rank}{'q' if wide else 'i'}", raw)


@setting
def _create(call: LibraryCall) -> None:
    _new(call)


@setting
def _destroy(call: LibraryCall) -> None:
    _plan(call)
    del call.runtime.libraries.plans[call["plan"]]


@setting
def _no_size(call: LibraryCall) -> None:
    call.put("size", 0)


def _execute(kind: int) -> Compute:
    def compute(call: LibraryCall) -> None:
        plan = _plan(call)
        if plan.kind != kind:
            raise CallFailedError(INVALID_TYPE)
        given, made = _TYPES[kind]
        shape, half = plan.shape, (*plan.shape[:-1], plan.shape[-1] // 2 + 1)
        to_complex, to_real = given in (F32, F64), made in (F32, F64)
        padded = (*shape[:-1], 2 * half[-1]) if call["given"] == call["made"] else shape
        x = _view(call, "given", plan, plan.given, half if to_real else shape,
                  padded if to_complex else None, given, "load")  # fmt: skip
        axes = tuple(range(1, len(shape) + 1))
        numbers = call.read(x, given)
        if to_complex:
            result: Any = np.fft.rfftn(numbers, axes=axes)
        elif to_real:
            result = np.fft.irfftn(numbers, shape, axes, norm="forward")
        elif call["direction"] == _FORWARD:
            result = np.fft.fftn(numbers, axes=axes)
        else:
            result = np.fft.ifftn(numbers, axes=axes, norm="forward")
        y = _view(call, "made", plan, plan.made, half if to_complex else shape,
                  padded if to_real else None, made, "store")  # fmt: skip
        call.store(y, "made", result, made)
        call.done(plan.stream)

    return compute


def _view(
    call: LibraryCall, name: str, plan: Plan, layout: BatchLayout, shape: tuple[int, ...],
    storage: tuple[int, ...] | None, of: NumberType, how: str,
) -> Any:  # fmt: skip
    """Return a batch; ``storage``: extents of real data without a layout of its own."""
    if layout.extents is None and storage is not None:
        layout = BatchLayout(storage, 1, math.prod(storage))
    return call.view(name, (plan.batch, *shape), layout.strides(shape), of, how)


_MANY = "*n *inembed istride idist *onembed ostride odist kind batch"
_MANY_64 = "*n *inembed istride:q idist:q *onembed ostride:q odist:q kind batch:q"
ROWS: tuple[tuple[str, str, Compute], ...] = (
    ("Plan1d", "*plan nx kind batch", _fill(True)),
    ("Plan2d", "*plan nx ny kind", _fill(True)),
    ("Plan3d", "*plan nx ny nz kind", _fill(True)),
    ("PlanMany", f"*plan rank {_MANY}", _fill(True)),
    ("MakePlan1d", "plan nx kind batch *size", _fill(False)),
    ("MakePlan2d", "plan nx ny kind *size", _fill(False)),
    ("MakePlan3d", "plan nx ny nz kind *size", _fill(False)),
    ("MakePlanMany", f"plan rank {_MANY} *size", _fill(False)),
    ("MakePlanMany64", f"plan rank {_MANY_64} *size", _fill(False)),
    ("Create", "*plan", _create),
    ("Destroy", "plan", _destroy),
    ("SetStream", "plan stream:q", option_setter(_plan, "stream", "stream")),
    ("SetAutoAllocation", "plan flag", hint(_plan)),
    ("SetWorkArea", "plan *area", hint(_plan)),
    ("GetSize", "plan *size", _no_size),
    ("Estimate1d", "nx kind batch *size", _no_size),
    ("Estimate2d", "nx ny kind *size", _no_size),
    ("Estimate3d", "nx ny nz kind *size", _no_size),
    ("GetVersion", "*out", version(VERSION)),
    ("ExecR2C", "plan *given *made", _execute(0x2A)),
    ("ExecC2R", "plan *given *made", _execute(0x2C)),
    ("ExecC2C", "plan *given *made direction", _execute(0x29)),
    ("ExecD2Z", "plan *given *made", _execute(0x6A)),
    ("ExecZ2D", "plan *given *made", _execute(0x6C)),
    ("ExecZ2Z", "plan *given *made direction", _execute(0x69)),
)

for _name, _parameters, _compute in ROWS:
    LIBRARY.enter(f"cufft{_name}", _parameters, _compute)

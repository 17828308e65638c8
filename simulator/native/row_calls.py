"""Calls of NumPy functions by native code, for steps that have no native form."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..compile.ir import Compute, IrOp, WarpCompute
from ..core.geometry import WARP
from ..isa import DTYPES
from . import layout
from .forms.catalog import native_form

_Values = NDArray[np.generic]


class RowCalls:
    """The functions of some steps, called with a warp's lanes.

    Args:
        steps: By number; ``scratch``: the scratch memory, which has their operands and results.

    Attributes:
        address: Of the function that native code calls with a step's number.
    """

    def __init__(self, steps: Sequence[Compute], scratch: NDArray[np.int64]) -> None:
        self._steps, self._bytes = steps, scratch.view(np.uint8)
        self._operands = [
            [self._lanes(layout.VALUES_AT + i, s.type) for i, s in enumerate(step.sources)]
            for step in steps
        ]
        self._results = [
            [self._lanes(layout.RESULTS_AT + i, type) for i, type in enumerate(step.op.outputs)]
            for step in steps
        ]
        self._raised: BaseException | None = None
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
            self._call
        )
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _lanes(self, area: int, type: str) -> _Values:
        start, dtype = area * layout.LANE_WORD, DTYPES[type]
        return self._bytes[start : start + WARP * dtype.itemsize].view(dtype)

    def _call(self, number: int, _: int) -> int:
        """Compute a step, in the scratch memory; return whether that failed."""
        try:
            self._compute(number)
        except BaseException as raised:  # native code cannot pass it on
            self._raised = raised
            return 1
        return 0

    def _compute(self, number: int) -> None:
        """Compute a step for 32 lanes."""
        with np.errstate(all="ignore"):
            # Copied: a result may be a view of an operand.
            found = self._steps[number].op.fn(*(a.copy() for a in self._operands[number]))
        results = found if isinstance(found, tuple) else (found,)
        for place, value in zip(self._results[number], results, strict=True):
            place[:] = value

    def raise_again(self) -> None:
        """Raise what a function raised, if one did."""
        if self._raised is not None:
            raise self._raised


def is_called_back(step: IrOp) -> bool:
    """Whether a step has no native form, and NumPy's function is called for a warp's lanes."""
    if not isinstance(step, Compute) or isinstance(step, WarpCompute):
        return False
    few = len(step.sources) <= layout.MAX_VALUES >= len(step.targets)
    return few and native_form(step.instruction, step.op) is None

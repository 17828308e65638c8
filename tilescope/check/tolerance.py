"""Default tolerances for outputs against a reference, if ``--close`` gives none.

A floating-point sum of n products is the exact sum of products with relative changes of at most n
u, where u is the unit roundoff. For large n the bound is 8 sqrt(n) u with a failure probability of
1e-13 (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019). The
reference is therefore called again with inputs that are randomly changed by that share, and outputs
may change as much by rounding. If only the outputs are given, terms of mixed sign are assumed to be
as large as the outputs on average.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernels.arguments.argument_copies import copies
from kernels.library import Expected
from simulator import Run

from ..cli.errors import UserError

_UNITS = {2: 2.0**-11, 4: 2.0**-24, 8: 2.0**-53}
"""Unit roundoff by bytes: half of the distance from 1 to the next number (IEEE 754)."""
_LAMBDA = 8
"""For which the probabilistic bound fails with a probability of 2 exp(-32)."""
_LARGEST = 2.0**-10
"""Up to which the bound that always holds is taken for what terms of one sign add up to."""
_CALLS = 4
"""Calls of the reference with changed inputs; ``_TIMES`` their change is allowed for."""
_TIMES = 4
_WORD = r"(?:^|[{;])\s*(?:@!?%\w+\s+)?"
_HALF = re.compile(_WORD + r"(?:(?:fma|add|sub|mul)\.\S*f16(?:x2)?\s|mma\.\S*\.f16\.f16\.f16\.f16\s"
                   r"|wmma\.mma\.\S*\.f16\.f16\s|wgmma\.\S*\.f16\.f16\.f16\s)", re.M)  # fmt: skip
_SHORTENED = re.compile(_WORD + r"(?:w?g?mma\S*\.tf32|cvt\S*\.tf32\.f32)", re.M)
"""PTX that adds up in half precision, and that shortens a float32 to TF32."""
_TF32 = 2.0**-11
"""By how much TF32 changes a float32, relatively."""


def rounding(dtype: Any) -> float:
    """Return the largest relative change when a number is rounded to a type."""
    return _UNITS.get(int(dtype.itemsize), 0.0) if dtype.kind == "f" else 0.0


def smallest(dtype: Any) -> float:
    """Return the largest change when a subnormal number is rounded to a type."""
    return 0.5 * float(np.finfo(dtype).smallest_subnormal) if rounding(dtype) else 0.0


@dataclass
class Closeness:
    """Bounds of the rounding errors in a launch's outputs.

    Attributes:
        args: The arguments before the launch.
        call: The reference, from arguments to outputs by name; ``None`` if only outputs are known.
        looked: Outputs whose bounds have been widened.
    """

    args: Sequence[Any]
    call: Callable[[list[Any]], Mapping[str, Any]] | None = None
    looked: set[str] = field(default_factory=set)

    def widened(
        self, expected: Mapping[str, Expected], names: Sequence[str], run: Run, ptx: str
    ) -> dict[str, Expected]:
        """Return the expected outputs with bounds for all rounding errors of a run."""
        found = dict(expected)
        names = [name for name in names if name not in self.looked]
        self.looked.update(names)
        changes: dict[float, dict[str, Any]] = {}
        for name in names:
            one = expected[name]
            wanted = np.asarray(one.value, np.float64)
            terms, unit = _terms(run, wanted.size), _unit(run, ptx)
            shortened = _TF32 if _SHORTENED.search(ptx) else 0.0
            likely = min(terms, _LAMBDA * terms**0.5) * unit
            surely = min(terms * unit, max(likely, _LARGEST))
            share = likely + shortened
            if self.call is None:
                scale = np.sqrt(np.mean(np.square(wanted))) if wanted.size else 0.0
                change = share * scale
            else:
                if share not in changes:
                    changes[share] = self._changes(share, expected, names)
                change = changes[share].get(name, 0.0)
            with np.errstate(invalid="ignore", over="ignore"):
                bound = one.bound + (surely + shortened) * np.abs(wanted) + _TIMES * change
            found[name] = replace(one, bound=np.where(np.isnan(bound), one.bound, bound))
        return found

    def _changes(
        self, share: float, expected: Mapping[str, Expected], names: Sequence[str]
    ) -> dict[str, Any]:
        """Return the root-mean-square change of outputs for inputs changed by a share."""
        assert self.call
        rng = np.random.default_rng(0)
        squares: dict[str, Any] = dict.fromkeys(names, 0.0)
        for _ in range(_CALLS):
            args = copies(self.args)
            for i, arg in enumerate(args):
                if _is_float(arg):
                    args[i] = _changed(arg, share, rng)
            try:
                outputs = self.call(args)
            except UserError:  # not with such inputs
                return {}
            for name in names:
                if name in outputs:
                    with np.errstate(invalid="ignore", over="ignore"):
                        exact = np.asarray(outputs[name], np.float64)
                        off = np.square(exact - np.asarray(expected[name].value, np.float64))
                    squares[name] = squares[name] + np.nan_to_num(off, nan=0.0, posinf=0.0)
        return {name: np.sqrt(total / _CALLS) for name, total in squares.items()}


def _is_float(arg: Any) -> bool:
    return isinstance(arg, np.ndarray) and arg.dtype.kind == "f"


def _changed(array: Any, share: float, rng: np.random.Generator) -> Any:
    """Return an array with each number randomly changed by at most a share."""
    wide = np.float32 if array.itemsize == 2 else array.dtype
    return (array * (1 + share * rng.uniform(-1, 1, array.shape))).astype(wide)


def _terms(run: Run, elements: int) -> float:
    """Return the floating-point operations and atomics for each of so many elements."""
    counters = run.counters
    atomics = counters.global_atomic.accesses + counters.shared_atomic.accesses
    return max(1.0, (counters.flops + atomics) / max(1, elements))


def _unit(run: Run, ptx: str) -> float:
    """Return the unit roundoff of the least precise arithmetic in a run."""
    c = run.counters
    single, double = c.fma_f32 + c.add_f32 + c.mul_f32, c.fma_f64 + c.add_f64 + c.mul_f64
    return _UNITS[2 if _HALF.search(ptx) else 8 if double and not single else 4]

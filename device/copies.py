"""Arguments for another launch: arrays are copied."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernels import TensorMap


def copies(args: Sequence[Any]) -> list[Any]:
    """Copies of the arrays, those of tensor maps too; one array given twice stays one."""
    made: dict[int, Any] = {}
    for arg in map(array_of, args):
        if isinstance(arg, np.ndarray) and id(arg) not in made:
            made[id(arg)] = arg.copy()
            made[id(arg)].flags.writeable = arg.flags.writeable
    return [
        replace(arg, array=made[id(arg.array)])
        if isinstance(arg, TensorMap)
        else made.get(id(arg), arg)
        for arg in args
    ]


def array_of(arg: Any) -> Any:
    """An argument, or the array of which it is a tensor map."""
    return arg.array if isinstance(arg, TensorMap) else arg

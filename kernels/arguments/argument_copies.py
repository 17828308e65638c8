"""Copies of arguments, for further launches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .convert import OBJECTS
from .pointers import Pointer, first_byte, owner
from .uninitialised import Unset


def copies(args: Sequence[Any]) -> list[Any]:
    """Copy all arrays; repeated arrays and views of one array keep their relation."""
    users: dict[int, set[int]] = {}
    for array in arrays_of(args):
        users.setdefault(id(owner(array)), set()).add(id(array))
    made: dict[int, Any] = {}

    def copied(array: Any) -> Any:
        whole = owner(array)
        if isinstance(array, Unset) or len(users[id(whole)]) == 1:
            return _once(made, array, lambda: array.copy())
        base = _once(made, whole, lambda: np.array(whole, copy=True))
        if whole is array:
            return base
        return _once(made, array, lambda: _view(base, whole, array))

    return [_mapped(arg, copied) for arg in args]


def arrays_of(args: Sequence[Any]) -> Iterator[Any]:
    """Yield the arrays of arguments, including those in tensor maps and structures."""
    for arg in args:
        if isinstance(arg, np.ndarray):
            yield arg
        elif isinstance(arg, (*OBJECTS, Pointer)):
            yield arg.array
        elif isinstance(arg, (Mapping, list, tuple)):
            yield from arrays_of([*arg.values()] if isinstance(arg, Mapping) else arg)
        elif isinstance(arg, np.void) and arg.dtype.hasobject and arg.dtype.names:
            yield from arrays_of([arg[name] for name in arg.dtype.names])


def _mapped(arg: Any, of: Callable[[Any], Any]) -> Any:
    """Return an argument with each array replaced."""
    if isinstance(arg, np.ndarray):
        return of(arg)
    if isinstance(arg, (*OBJECTS, Pointer)):
        return replace(arg, array=of(arg.array))
    if isinstance(arg, Mapping):
        return {name: _mapped(one, of) for name, one in arg.items()}
    if isinstance(arg, (list, tuple)):
        made = [_mapped(one, of) for one in arg]
        return type(arg)(*made) if hasattr(arg, "_fields") else type(arg)(made)
    if isinstance(arg, np.void) and arg.dtype.hasobject and arg.dtype.names:
        record = np.array(arg)
        for name in arg.dtype.names:
            record[name] = _mapped(arg[name], of)
        return record[()]
    return arg


def _once(made: dict[int, Any], array: Any, make: Callable[[], Any]) -> Any:
    if id(array) not in made:
        made[id(array)] = make()
        made[id(array)].flags.writeable = array.flags.writeable
    return made[id(array)]


def _view(base: Any, whole: Any, array: Any) -> Any:
    at = first_byte(array) - first_byte(whole)
    if not whole.flags.c_contiguous:
        return array.copy()
    return np.ndarray(array.shape, array.dtype, base, at, array.strides)

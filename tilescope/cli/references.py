"""Expected outputs of a user's kernel: ``--expect`` and ``--reference``."""

import functools
import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.arguments.argument_copies import copies
from kernels.library import Expected, Launch

from ..check.tolerance import Closeness, rounding, smallest
from .argument_spec import parse_arguments
from .errors import UserError
from .menu.choices import CLOSE


def expected(
    names: Sequence[str], args: Sequence[Any], words: Sequence[str], function: str | None,
    close: str | None, rng: np.random.Generator,
) -> tuple[dict[str, int], dict[str, Expected], Closeness | None]:  # fmt: skip
    """Return the output arrays (positions by name) and their expected contents.

    Also returns the rounding model, if ``close`` gives no tolerance.

    Args:
        names: Parameter names in the source; ``arg0`` ... if one has none.
        args: The launch's arguments before it; only copies are passed on.
        words: ``NAME=WORD``, with an array as in arguments (``C=@right.npy``).
        function: ``module:function``, called with copies of the arguments. It modifies its outputs
            in place, or returns them by name in a dict.
        rng: Generator for random words.
        close: ``rtol,atol``: the tolerance is ``atol + rtol * |expected|``; ``None``: ``CLOSE`` and
            rounding errors for floating-point numbers, exact for integers.

    Raises:
        UserError: A name, word or function is invalid.
    """
    called = [name or f"arg{i}" for i, name in enumerate([*names, *[""] * len(args)][: len(args)])]
    values: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name in values:
            raise UserError(f"--expect {word}: {name} has another --expect already")
        place = _place(name, called, args)
        given = f"{_kind(args[place])}={text}" if "[" not in text else text
        try:
            values[name] = parse_arguments([given], rng)[0]
        except UserError as error:  # reported with the word as it was typed
            raise UserError(str(error).replace(f"argument {given!r}", f"--expect {word}")) from None
    if function is not None:
        values |= _called(function, called, args)
    found = {}
    for name, value in values.items():
        array = args[_place(name, called, args)]
        wanted = np.asarray(value)
        if wanted.shape != array.shape:
            raise UserError(f"the reference of {name} has shape {wanted.shape}, not {array.shape}")
        found[name] = near(array, wanted, close)
    places = {name: called.index(name) for name in found}
    if close is not None:
        return places, found, None
    call = None if function is None else functools.partial(_called, function, called)
    return places, found, Closeness(copies(args), call)


def near(array: Any, wanted: Any, close: str | None) -> Expected:
    """Return an array's expected content with the tolerance of its type or ``--close``."""
    if close is None and array.dtype.kind in "iub":
        return Expected(wanted, np.zeros(wanted.shape))
    relative, absolute = tolerances(close or CLOSE)
    wide = wanted.astype(np.float64)
    if close is None:  # the last rounding, to the output's own type
        relative = max(relative, 2 * rounding(array.dtype))
        absolute = max(absolute, smallest(array.dtype))
    return Expected(wide, absolute + relative * np.abs(wide))


def launch_of(target: Any, places: Mapping[str, int], found: Mapping[str, Expected]) -> Launch:
    """Return a target's launch with a reference, in the form of library kernels."""
    return Launch(
        target.grid, target.block, target.args, places, lambda _: found, target.shared_bytes
    )


def tolerances(text: str) -> tuple[float, float]:
    """Parse ``rtol,atol``; raises ``UserError``."""
    try:
        relative, absolute = map(float, text.split(","))
    except ValueError:
        raise UserError(f"--close {text!r}: give rtol,atol, as in {CLOSE}") from None
    if not (relative >= 0 and absolute >= 0):
        raise UserError(f"--close {text!r}: neither may be negative")
    return relative, absolute


def _place(name: str, called: Sequence[str], args: Sequence[Any]) -> int:
    arrays = [n for n, arg in zip(called, args, strict=True) if isinstance(arg, np.ndarray)]
    if name not in arrays:
        raise UserError(f"no array {name!r} among the arguments; there are: {', '.join(arrays)}")
    return called.index(name)


def _kind(array: Any) -> str:
    """Return an array's type and shape as in an argument word."""
    letter = {"f": "f", "i": "i", "u": "u"}.get(array.dtype.kind, "u")
    shape = ",".join(str(n) for n in array.shape)
    return f"{letter}{8 * array.dtype.itemsize}[{shape}]"


def _called(function: str, called: Sequence[str], args: Sequence[Any]) -> dict[str, Any]:
    """Return the outputs of a user's function on copies of the arguments."""
    module, _, name = function.partition(":")
    if not module or not name:
        raise UserError(f"--reference {function!r}: give module:function")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)  # as python -m has it
    try:
        one = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"--reference {function!r}: {error}") from None
    finally:
        if added:
            sys.path.remove(here)
    given = copies(args)
    try:
        result = one(*given)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if place.filename == __file__ else f", {place.filename}:{place.lineno}"
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"--reference {function!r} failed{where}: {said}") from None
    if isinstance(result, Mapping):
        return dict(result)
    changed = {
        n: now for n, arg, now in zip(called, args, given, strict=True)
        if isinstance(arg, np.ndarray) and arg.tobytes() != now.tobytes()
    }  # fmt: skip
    if result is None:
        if not changed:
            raise UserError(f"--reference {function!r} changed none of its arguments")
        return changed
    raise UserError(
        f"--reference {function!r} returned {type(result).__name__}: it has to change its outputs "
        "in place, or to return them by name in a dict"
    )

"""Kernel arguments as command-line words: ``f32[64,64]=normal``, ``64``, ``u8:3``."""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import Surface, Texture, unset
from kernels.arguments.bfloat16 import bfloat16
from kernels.arguments.scalars import rounded
from kernels.arguments.texture import ADDRESSES, FILTERS

from .errors import UserError

TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
"""Element types by the name a word gives them."""
WORDS = ("zeros", "ones", "unset", "normal", "uniform", "arange", "@file.npy")
"""What an array can start with, other than a number."""

_ARRAY = re.compile(r"(\w+)\[([^\]]*)\](?:=(.*))?", re.S)
_VIEW = re.compile(r"([A-Za-z_]\w*)\[(-?\d*):(-?\d*)\]")
_STRUCT = re.compile(r"struct\((.*)\)", re.S)
_PICTURE = re.compile(r"(texture|surface):((?:\w+:)*)(\w+\[.*)", re.S)
_OPTIONS: dict[str, dict[str, Any]] = {
    **{word: {"filter": word} for word in FILTERS},
    **{word: {"address": word} for word in ADDRESSES},
    "normalized": {"normalized": True}, "floats": {"read": "normalized"},
    "layered": {"layered": True}, "fetch": {"linear": True},
    "x2": {"channels": 2}, "x4": {"channels": 4},
}  # fmt: skip
"""What a word may say of a texture or a surface."""
_TYPED = re.compile(r"(bf16|[a-z]\d+):(?!:)(.*)", re.S)
_BF16 = "bf16"
"""A type that NumPy lacks: numbers as of float32, rounded, and kept as their bits (uint16)."""
_AS_NUMBERS = {"true": "1", "false": "0", "True": "1", "False": "0", "nullptr": "0, a null pointer",
               "NULL": "0, a null pointer", "None": "0, a null pointer"}  # fmt: skip
"""What C++ and Python write, and words here do not."""
_INTEGER = re.compile(r"[+-]?(0x[0-9a-f]+|0b[01]+|\d+)", re.I)


def is_argument(word: str) -> bool:
    """Whether a word can only be an argument, not a kernel's name."""
    patterns = _ARRAY, _PICTURE, _TYPED, _VIEW, _STRUCT
    return any(p.fullmatch(word) for p in patterns) or _number(word) is not None


def parse_arguments(
    words: Sequence[str], rng: np.random.Generator, names: Sequence[str] = (),
    arrays: Sequence[Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Return arrays and scalars for ``simulator.launch``; random ones in the order of the words.

    ``names``: names of the kernel's parameters, for views of other arguments (``A[32:]``), or of
    ``arrays``.

    Raises:
        UserError: A word is invalid, or its type cannot represent the value.
    """
    made = [None if _VIEW.fullmatch(word) else _argument(word, rng, {}) for word in words]
    named = zip(names, made if arrays is None else arrays, strict=False)
    known = {name: one for name, one in named if name and isinstance(one, np.ndarray)}
    return [
        _argument(word, rng, known) if _VIEW.fullmatch(word) else _filled(one, known)
        for word, one in zip(words, made, strict=True)
    ]


@dataclass(frozen=True)
class _Later:
    """A view in a structure, created when all arrays are known."""

    word: str


def _filled(one: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(one, tuple):
        return tuple(_filled(part, known) for part in one)
    return _view(one.word, known) if isinstance(one, _Later) else one


def _view(word: str, known: Mapping[str, Any]) -> Any:
    """Return a view of another argument's array: ``A[32:]`` slices its first axis."""
    found = _VIEW.fullmatch(word)
    assert found
    name, first, last = found.groups()
    if name not in known:
        listed = ", ".join(known) or "none"
        raise UserError(f"argument {word!r}: no array {name!r} among the parameters ({listed})")
    part = known[name][int(first) if first else None : int(last) if last else None]
    if not part.size:
        raise UserError(f"argument {word!r}: nothing of {name} is left")
    return part


def _struct(inside: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return a structure's fields, separated by commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(inside):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(inside[begin:i])
            begin = i + 1
    words = [part.strip() for part in (*parts, inside[begin:])]
    return tuple(_Later(w) if _VIEW.fullmatch(w) else _argument(w, rng, {}) for w in words)


def _argument(word: str, rng: np.random.Generator, known: Mapping[str, Any]) -> Any:
    if _VIEW.fullmatch(word):
        return _view(word, known)
    if found := _STRUCT.fullmatch(word):
        return _struct(found[1], rng)
    if found := _ARRAY.fullmatch(word):
        name, extents, init = found.groups()
        make = _bfloat16s if name == _BF16 else functools.partial(_array, dtype=_type(word, name))
        return make(word, shape=_shape(word, extents), init=init or "zeros", rng=rng)
    if found := _PICTURE.fullmatch(word):
        return _picture(word, found[1], found[2].split(":")[:-1], _argument(found[3], rng, {}))
    if found := _TYPED.fullmatch(word):
        if found[1] == _BF16:
            return bfloat16(_fit(word, np.float32, found[2]))[()]
        return _fit(word, _type(word, found[1]), found[2])[()]
    number = _number(word)
    if word in _AS_NUMBERS:
        raise UserError(f"argument {word!r}: write {_AS_NUMBERS[word]}")
    if number is None:
        raise UserError(
            f"argument {word!r} is neither an array, as in f32[64,64]=normal, nor a number, "
            "as in 64, 1.5 or u8:3, nor struct(...) of these"
        )
    return number


def _picture(word: str, kind: str, said: list[str], array: Any) -> Any:
    """Return a texture or surface of an array."""
    options: dict[str, Any] = {}
    for name in said:
        if name not in _OPTIONS:
            raise UserError(f"argument {word!r}: {name!r} is not one of {', '.join(_OPTIONS)}")
        options |= _OPTIONS[name]
    try:
        return (Texture if kind == "texture" else Surface)(array, **options)
    except (TypeError, ValueError) as error:
        raise UserError(f"argument {word!r}: {error}") from None


def _type(word: str, name: str) -> type[Any]:
    if name not in TYPES:
        listed = ", ".join((_BF16, *TYPES))
        raise UserError(f"argument {word!r}: no type {name!r}; there are: {listed}")
    return TYPES[name]


def _shape(word: str, extents: str) -> tuple[int, ...]:
    parts = extents.split(",")
    if not all(re.fullmatch(r"\s*\d+\s*", part) for part in parts):
        raise UserError(f"argument {word!r}: the shape must be whole numbers, as in [64,64]")
    return tuple(int(part) for part in parts)


def _array(
    word: str, dtype: type[Any], shape: tuple[int, ...], init: str, rng: np.random.Generator
) -> Any:
    kind = np.dtype(dtype).kind
    try:
        if init.startswith("@"):
            return _loaded(word, init[1:], shape, [np.dtype(dtype)])
        if init == "normal":
            if kind != "f":
                raise UserError(f"argument {word!r}: normal numbers need a floating-point type")
            return rng.standard_normal(shape).astype(dtype)
        if init == "uniform":
            if kind == "f":
                return rng.random(shape).astype(dtype)
            limits = np.iinfo(dtype)
            return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        if init == "arange":
            return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
        if init == "unset":
            return unset(shape, dtype)
        if init in ("zeros", "ones"):
            return np.full(shape, int(init == "ones"), dtype)
        return np.full(shape, _fit(word, dtype, init, WORDS))
    except (ValueError, OverflowError, MemoryError):
        raise UserError(f"argument {word!r}: an array of that shape does not fit") from None


def _bfloat16s(word: str, shape: tuple[int, ...], init: str, rng: np.random.Generator) -> Any:
    """Return bfloat16 values as uint16, from numbers or from a .npy file."""
    if init == "unset":
        return unset(shape, np.uint16)
    if init.startswith("@"):
        loaded = _loaded(word, init[1:], shape, ("float32", "uint16", "|V2"))
        return bfloat16(loaded) if loaded.dtype.kind == "f" else loaded.view(np.uint16)
    return bfloat16(_array(word, np.float32, shape, init, rng))


def _loaded(word: str, file: str, shape: tuple[int, ...], dtypes: Sequence[Any]) -> Any:
    """Load an array from a file and check its shape and dtype."""
    try:
        loaded = np.load(file, allow_pickle=False)
    except OSError as error:
        raise UserError(f"argument {word!r}: {error.strerror or 'not a .npy file'}") from None
    except (ValueError, EOFError):
        raise UserError(f"argument {word!r}: not a .npy file of numbers") from None
    if not isinstance(loaded, np.ndarray):
        raise UserError(f"argument {word!r}: an .npz file holds several arrays; give a .npy file")
    if loaded.shape != shape or loaded.dtype not in dtypes:
        raise UserError(f"argument {word!r}: the file holds {loaded.dtype} {list(loaded.shape)}")
    return np.array(loaded)


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return int(text, 0) if not text.lstrip("+-").isdecimal() else int(text)
    try:
        return float(text)
    except ValueError:
        return None


def _fit(word: str, dtype: type[Any], text: str, others: Sequence[str] = ()) -> Any:
    """Return a number as a 0-d array of a type; raises if it does not fit.

    ``others``: words that could stand instead of the number, for the message.
    """
    number = _number(text)
    if number is None:
        what = f"neither a number nor one of {', '.join(others)}" if others else "not a number"
        raise UserError(f"argument {word!r}: {text!r} is {what}")
    if np.dtype(dtype).kind == "f":
        if (value := rounded(np.dtype(dtype), number)) is None:
            raise UserError(f"argument {word!r}: {text} does not fit in {np.dtype(dtype).name}")
        return np.asarray(value)
    limits = np.iinfo(dtype)
    if not isinstance(number, int) or not limits.min <= number <= limits.max:
        raise UserError(f"argument {word!r}: {text} does not fit in {np.dtype(dtype).name}")
    return np.asarray(number, dtype)

"""Arguments as parameter bytes: numbers, structures, and addresses in them."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..ptx.header import Param
from ..source.element_types import wrapped
from ..source.structures import TypeLayout
from . import tensor_map
from .pointers import AddressSlot, Gathered, Pointer
from .scalars import scalar_bytes
from .texture import NBYTES, Surface, Texture

_ADDRESS = ("u64", "s64", "b64")
_Object = Texture | Surface | tensor_map.TensorMap
_OBJECTS = (Texture, Surface, tensor_map.TensorMap)
_IN_CPP = {"s16": "short", "u16": "unsigned short", "s32": "int", "u32": "unsigned int",
           "f32": "float", "f64": "double"}  # fmt: skip
"""The C++ type that a structure's field has for sure."""
_SIGNED = _IN_CPP | {"s8": "signed char", "s64": "long long"}
"""Its like, for what becomes of a number."""


@dataclass(frozen=True)
class Value:
    """Bytes with slots for addresses that are known after allocation."""

    raw: bytes
    addresses: tuple[AddressSlot, ...] = ()

    def moved(self, places: Sequence[tuple[int, int]]) -> "Value":
        """Return the value with arrays relocated; (array, offset) for each by number."""
        moved = [
            replace(a, array=places[a.array][0], offset=a.offset + places[a.array][1])
            for a in self.addresses
        ]
        return Value(self.raw, tuple(moved))

    def filled(
        self, address: Callable[[int], int], encode: Callable[[Any, int], bytes] | None = None
    ) -> bytes:
        """Return the bytes, with addresses of arrays and encodings of objects."""
        raw = bytearray(self.raw)
        for a in self.addresses:
            there = address(a.array) + a.offset
            word = encode(a.of, there) if a.of and encode else there.to_bytes(8, "little")
            raw[a.at : a.at + len(word)] = word
        return bytes(raw)


@dataclass(frozen=True)
class Packer:
    """Packs arguments into values and gathers the arrays that they point to.

    ``warnings``: receives a sentence for each number that changes in its field or variable.
    """

    gathered: Gathered
    warnings: list[str] = field(default_factory=list)

    def value(
        self, param: Param, arg: Any, layout: TypeLayout | None, label: str, kind: str = ""
    ) -> Value:
        """Pack an argument of a kernel.

        ``layout``: of a by-value structure, if known. ``kind``: the C++ type, if known.

        Raises:
            TypeError: The argument is of another kind.
            ValueError: The value does not fit.
        """
        if param.is_struct:
            return self._structure(param, arg, layout, label)
        if isinstance(arg, (np.ndarray, Pointer, list, tuple)):
            if param.type not in _ADDRESS:
                raise TypeError(f"{label} is {kind or param.type} by value; it cannot be an array")
            return self._pointer(arg, label)
        if isinstance(arg, ctypes._SimpleCData):
            arg = arg.value
        return Value(scalar_bytes(param, arg, label, kind))

    def variable(self, nbytes: int, arg: Any, layout: TypeLayout | None, label: str) -> Value:
        """Pack the content of a module variable of ``nbytes``; raises as ``value``."""
        whole = (bytes, bytearray, np.void, ctypes.Structure)
        if isinstance(arg, _OBJECTS):
            value = self._object(arg, label)
        elif layout is None or layout.nbytes != nbytes or isinstance(arg, whole):
            value = self._structure(Param(label, "b8", nbytes, 1, 0), arg, None, label)
        else:
            value = self._fitted(arg, layout, label)
        if len(value.raw) != nbytes:
            raise ValueError(f"{label} has {nbytes} bytes, what is given {len(value.raw)}")
        return value

    def _pointer(self, arg: Any, label: str) -> Value:
        """Pack an address: of an array, inside an array, or of a table of addresses."""
        if isinstance(arg, (list, tuple)):
            return Value(bytes(8), (AddressSlot(0, self._table(arg, label)),))
        if isinstance(arg, Pointer):
            number = self.gathered.add(arg.array, label)
            return Value(bytes(8), (AddressSlot(0, number, arg.nbytes),))
        return Value(bytes(8), (AddressSlot(0, self.gathered.add(arg, label)),))

    def _table(self, rows: Sequence[Any], label: str) -> int:
        """Return the array number of a table of addresses (``float**``) or handles."""
        values = []
        for i, row in enumerate(rows):
            if isinstance(row, _OBJECTS):
                values.append(self._object(row, f"{label}[{i}]"))
            elif row is None or isinstance(row, (np.ndarray, Pointer, list, tuple)):
                values.append(self._address(row, f"{label}[{i}]"))
            else:
                raise TypeError(
                    f"{label} is a pointer: it takes an array, a Pointer, or a sequence of these "
                    "as a table of addresses, or of textures, surfaces or tensor maps; element "
                    f"{i} is {type(row).__name__}"
                )
        each = max((len(value.raw) for value in values), default=8)
        if any(len(value.raw) != each for value in values):
            raise TypeError(f"{label}: a table of tensor maps has nothing else")
        table = np.zeros(len(rows) * each // 8, np.uint64)
        table.flags.writeable = False  # it is the launch's own: nothing of it comes back
        number = self.gathered.add(table, label)
        self.gathered.tables[number] = _joined(
            each * len(rows), [(each * i, v) for i, v in enumerate(values)]
        )
        return number

    def _structure(self, param: Param, arg: Any, layout: TypeLayout | None, label: str) -> Value:
        if layout is not None and layout.nbytes != param.nbytes:
            layout = None
        dtype = arg.dtype if isinstance(arg, np.void) else None
        bits = np.uint16 if layout and layout.scalar else np.generic  # a float16 is a number
        if dtype is not None and dtype.hasobject and dtype.names:
            value = self._objects(arg, label)
        elif isinstance(arg, (np.void, bytes, bytearray)) or (
            isinstance(arg, bits) and arg.dtype.itemsize == param.nbytes
        ):
            value = Value(bytes(arg) if isinstance(arg, (bytes, bytearray)) else arg.tobytes())
        elif isinstance(arg, ctypes.Structure):
            value = Value(bytes(arg))
        elif layout is not None and (layout.scalar or isinstance(arg, (tuple, list, Mapping))):
            value = self._fitted(arg, layout, label)
        elif isinstance(arg, (tuple, list)):
            value, _ = self._natural(arg, param.nbytes, label)
        else:
            raise TypeError(
                f"{label} is a struct of {param.nbytes} bytes; give a NumPy structured scalar, a "
                f"ctypes.Structure or a tuple, not {type(arg).__name__}"
            )
        if len(value.raw) != param.nbytes:
            raise ValueError(f"{label} is a struct of {param.nbytes} bytes, not {len(value.raw)}")
        return value

    def _objects(self, arg: Any, label: str) -> Value:
        """Pack a structured scalar with Python objects in some fields, which are addresses."""
        parts = []
        for name in arg.dtype.names:
            kind, at = arg.dtype.fields[name][:2]
            place = f"{label}.{name}"
            if kind == np.dtype(object):
                parts.append((at, self._address(arg[name], place)))
            elif kind.hasobject and kind.names:
                parts.append((at, self._objects(arg[name], place)))
            elif kind.hasobject:
                raise TypeError(f"{place}: an array of Python objects; name each field")
            else:
                parts.append((at, Value(np.asarray(arg[name], kind.base).tobytes())))
        return _joined(arg.dtype.itemsize, parts)

    def _fitted(self, arg: Any, layout: TypeLayout, label: str) -> Value:
        """Pack a value for a known layout: a number, an address, or one for each field."""
        if layout.scalar == "pointer":
            return self._address(arg, label)
        if isinstance(arg, _OBJECTS) and layout.nbytes == _wide(arg):
            return self._object(arg, label)
        if layout.scalar:
            if isinstance(arg, ctypes._SimpleCData):
                arg = arg.value
            wrong = isinstance(arg, (int, np.integer)) and wrapped(
                _SIGNED.get(layout.scalar, ""), int(arg)
            )
            if wrong:
                self.warnings.append(f"{label}: {wrong}")
            param = Param(label, layout.scalar, 1, layout.align, 0)
            return Value(scalar_bytes(param, arg, label, _IN_CPP.get(layout.scalar, "")))
        names = [name for name, _, _ in layout.fields]
        if isinstance(arg, Mapping):
            if set(arg) != set(names):
                raise ValueError(f"{label} has the fields {', '.join(names)}, not {', '.join(arg)}")
            arg = [arg[name] for name in names]
        if isinstance(arg, np.void) or (isinstance(arg, np.generic) and len(names) != 1):
            if arg.dtype.itemsize != layout.nbytes:
                raise ValueError(f"{label} has {layout.nbytes} bytes, not {arg.dtype.itemsize}")
            return Value(arg.tobytes())
        if not isinstance(arg, (tuple, list, np.ndarray)):
            raise TypeError(f"{label} takes a value for each of {', '.join(names)}, not {arg!r}")
        if len(arg) != len(names):
            raise ValueError(
                f"{label} takes {len(names)} values ({', '.join(names)}), not {len(arg)}"
            )
        parts = [(at, self._fitted(one, kind, f"{label}.{name}"))
                 for one, (name, at, kind) in zip(arg, layout.fields, strict=True)]  # fmt: skip
        return _joined(layout.nbytes, parts)

    def _natural(self, arg: Sequence[Any], nbytes: int, label: str) -> tuple[Value, int]:
        """Pack a tuple for a structure of unknown layout, by natural alignment.

        Returns the value and its alignment.
        """
        parts, at, align = [], 0, 1
        for i, one in enumerate(arg):
            if isinstance(one, _OBJECTS):
                value = self._object(one, f"{label}[{i}]")
                wide = min(len(value.raw), 64)  # alignas(64) CUtensorMap
            elif isinstance(one, (np.ndarray, Pointer)) or one is None:
                value, wide = self._address(one, f"{label}[{i}]"), 8
            elif isinstance(one, np.generic):
                value, wide = Value(one.tobytes()), one.dtype.alignment
            elif isinstance(one, (tuple, list)):
                value, wide = self._natural(one, nbytes, f"{label}[{i}]")
            else:
                raise TypeError(
                    f"{label}: no source says what fields this struct of {nbytes} bytes has; give "
                    f"arrays and NumPy scalars, not {type(one).__name__}"
                )
            at += -at % wide
            parts.append((at, value))
            at, align = at + len(value.raw), max(align, wide)
        return _joined(at + -at % align, parts), align

    def _object(self, of: _Object, label: str) -> Value:
        return Value(bytes(_wide(of)), (AddressSlot(0, self.gathered.add(of.array, label), 0, of),))

    def _address(self, arg: Any, label: str) -> Value:
        if isinstance(arg, (np.ndarray, Pointer, list, tuple)):
            return self._pointer(arg, label)
        if arg is None or isinstance(arg, (int, np.integer)):
            return Value(scalar_bytes(Param(label, "u64", 1, 8, 0), arg, label))
        raise TypeError(f"{label} is a pointer; it takes an array or a Pointer, not {arg!r}")


def _wide(of: _Object) -> int:
    return tensor_map.NBYTES if isinstance(of, tensor_map.TensorMap) else NBYTES


def _joined(nbytes: int, parts: Sequence[tuple[int, Value]]) -> Value:
    """Concatenate values at given offsets; padding is zero."""
    raw, addresses = bytearray(nbytes), []
    for at, value in parts:
        raw[at : at + len(value.raw)] = value.raw
        addresses += [replace(a, at=at + a.at) for a in value.addresses]
    return Value(bytes(raw), tuple(addresses))

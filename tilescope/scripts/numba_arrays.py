"""Numba's device arrays, and its arrays of the host that a GPU reaches.

A device array has what Numba's ``DeviceNDArray`` has and nothing of NumPy's besides: no sums, no
arithmetic; NumPy's functions copy it to the host. Pinned, mapped and managed arrays are NumPy's.
"""

import ctypes
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kernels.arguments.uninitialised import Unset, unset

from ..sessions.recording import user_line
from .virtual_device import DeviceArray, VirtualDevice, refuse

_SHARED = {"shape", "strides", "dtype", "size", "ndim", "base", "itemsize", "ctypes", "data"}
"""What a ``DeviceNDArray`` has of an array's, and what is asked here."""
_ONE_SIDED = "eq ne lt le gt ge divmod rdivmod"
_TWO_SIDED = "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift"
_OPERATORS = _ONE_SIDED.split() + [s + name for s in ("", "r", "i") for name in _TWO_SIDED.split()]


def plain(array: Any) -> Any:
    """Return a device array's memory as a NumPy array that tracks uninitialised bytes."""
    return np.ndarray.view(array, Unset) if isinstance(array, DeviceArray) else array


def _host(value: Any, kind: Any) -> Any:
    """NumPy's arrays in place of device arrays, in lists as well."""
    if isinstance(value, kind):
        return value.copy_to_host()
    if isinstance(value, (list, tuple)):
        return type(value)(_host(one, kind) for one in value)
    return value


class Copied(DeviceArray):
    """Base of both kinds of arrays: copies to and from the host and each other."""

    machine: VirtualDevice
    stream = 0

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """Return the contents in a new array, or in ``ary``; the host waits if it is pageable."""
        pinned = isinstance(ary, HostArray)
        self.machine.copied(
            "copy_to_host", stream, not stream or not pinned,
            to=plain(ary) if pinned else None, given=plain(self),
        )  # fmt: skip
        self.machine.checks.host_unset(user_line(), "copy_to_host", plain(self))
        if ary is None:
            return np.array(self, copy=True, subok=False, order="K")
        np.copyto(np.asarray(ary), np.asarray(self))
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Take the contents of ``ary``."""
        given = plain(ary) if isinstance(ary, DeviceArray) else None
        self.machine.copied("copy_to_device", stream, not stream, to=plain(self), given=given)
        Unset.__setitem__(self, ..., np.asarray(ary).reshape(self.shape))

    def split(self, section: int, stream: Any = 0) -> Iterator[Any]:
        """Return the parts of so many elements each."""
        for at in range(0, self.size, section):
            yield self[at : at + section]

    def bind(self, stream: Any = 0) -> Any:
        """Itself."""
        return self

    @property
    def gpu_data(self) -> Any:
        """Its memory: what ``DeviceNDArray`` takes."""
        return self

    get_ipc_handle = refuse("get_ipc_handle", "use one process")

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        """Its address on the device."""
        return ctypes.c_void_p(self.machine.device.address_of(plain(self)))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA Array Interface, version 3, for other libraries."""
        strides = None if self.flags.c_contiguous else self.strides
        address = self.machine.device.address_of(plain(self))
        return {
            "shape": self.shape, "strides": strides, "data": (address, False),
            "typestr": self.dtype.str, "stream": None, "version": 3,
        }  # fmt: skip

    as_cuda_arg = refuse("as_cuda_arg", "pass the array")


class HostArray(Copied):
    """Pinned, mapped or managed memory: the host's accesses are held to the GPU's work."""

    def _touched(self, how: str) -> Any:
        self.machine.host(plain(self), how)
        return np.asarray(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, np.ndarray) or found.base is None:
            self.machine.host(plain(self), "load")
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        part = super().__getitem__(key)
        whole = not isinstance(part, HostArray) or not np.may_share_memory(part, self)
        self.machine.host(plain(self if whole else part), "store")
        super().__setitem__(key, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        given = [x._touched("load") if isinstance(x, HostArray) else x for x in inputs]
        outs = named.get("out", ())
        if outs:
            named["out"] = tuple(
                x._touched("store") if isinstance(x, HostArray) else x for x in outs
            )
        made = getattr(ufunc, method)(*given, **named)
        return outs[0] if len(outs) == 1 else made

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self._touched("load")
        return super().__array_function__(function, types, args, kwargs)


def arrays(made_for: VirtualDevice) -> tuple[type[Copied], type[HostArray]]:
    """Return the classes of device and host arrays; their copies are reported to the machine."""

    class NumbaArray(Copied):
        machine = made_for
        __hash__ = object.__hash__  # type: ignore[assignment]
        __repr__ = __str__ = object.__repr__

        def __new__(
            cls, shape: Any, strides: Any, dtype: Any, stream: Any = 0, gpu_data: Any = None
        ) -> Any:
            """Return a view of a device array's memory, or new memory."""
            if gpu_data is None:
                return device_array(cls, shape, dtype)
            flat = plain(gpu_data)
            if flat.dtype != np.dtype(dtype):
                flat = flat.view(dtype)
            strided = np.lib.stride_tricks.as_strided(flat, shape, strides, subok=True)
            return np.ndarray.view(strided, cls)

        def __getitem__(self, key: Any) -> Any:
            _basic(key)
            found = super().__getitem__(key)
            if not isinstance(found, np.ndarray):
                self.machine.copied("the element that is read", 0, True, given=plain(self))
            return found

        def __setitem__(self, key: Any, value: Any) -> None:
            self.setitem(key, value)

        def getitem(self, item: Any, stream: Any = 0) -> Any:
            """``d[item]``, in a stream."""
            return self[item]

        def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
            """``d[key] = value``, in a stream; without one the host waits."""
            _basic(key)
            part = plain(self)[key]
            to = part if isinstance(part, np.ndarray) else plain(self)
            given = plain(value) if isinstance(value, DeviceArray) else None
            self.machine.copied("the assignment", stream, not stream, to=to, given=given)
            Unset.__setitem__(self, key, np.asarray(value))

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
            if any(isinstance(one, NumbaArray) for one in named.get("out", ())):
                raise TypeError("return arrays must be of ArrayType, not device arrays")
            return getattr(ufunc, method)(*_host(inputs, NumbaArray), **named)

        def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
            named = {name: _host(value, NumbaArray) for name, value in kwargs.items()}
            return function(*_host(args, NumbaArray), **named)

    class Host(HostArray):
        machine = made_for

    known = {"T", "flags", "nbytes", "ravel", "reshape", "squeeze", "transpose", "view", *_SHARED}
    for name in dir(np.ndarray):
        if not name.startswith("_") and name not in known:
            setattr(NumbaArray, name, property(_absent(name)))
    for name in _OPERATORS:
        setattr(NumbaArray, f"__{name}__", lambda *_: NotImplemented)
    for name in ("neg", "pos", "abs", "invert", "float", "int"):
        setattr(NumbaArray, f"__{name}__", _no_operator)
    NumbaArray.__name__ = NumbaArray.__qualname__ = "DeviceNDArray"
    return NumbaArray, Host


def _absent(name: str) -> Any:
    def ask(array: Any) -> Any:
        raise AttributeError(
            f"'DeviceNDArray' object has no attribute '{name}'; copy_to_host() has it"
        )

    return ask


def _no_operator(array: Any) -> Any:
    raise TypeError("bad operand type: a device array has no arithmetic; use copy_to_host()")


def _basic(key: Any) -> None:
    """Refuse an index that is an array, as Numba does."""
    for one in key if isinstance(key, tuple) else (key,):
        if not (one is ... or isinstance(one, slice)):
            try:
                operator.index(one)
            except TypeError:
                raise TypeError(
                    f"a device array takes whole numbers and slices as an index, not {one!r}"
                ) from None


def device_array(
    kind: type, shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C"
) -> Any:
    """New memory, which nothing has written."""
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    made: Any = np.ndarray.view(unset(sizes if order == "C" else sizes[::-1], dtype), kind)
    return made if order == "C" else made.T


def as_device_array(machine: VirtualDevice, kind: type, obj: Any) -> Any:
    """``cuda.as_cuda_array``: the same memory, of any object with the CUDA Array Interface.

    Raises:
        TypeError: The object has no such interface.
        ValueError: Its address is none of the device.
    """
    if isinstance(obj, DeviceArray):
        return obj
    if hasattr(obj, "data_ptr"):
        return np.ndarray.view(machine.array(obj), kind)
    if not hasattr(obj, "__cuda_array_interface__"):
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return from_interface(machine, kind, obj.__cuda_array_interface__)


def from_interface(machine: VirtualDevice, kind: type, known: Mapping[str, Any]) -> Any:
    """Return a device array at the address that a ``__cuda_array_interface__`` names.

    Raises:
        ValueError: The address is none of the device.
    """
    address, shape, dtype = known["data"][0], tuple(known["shape"]), np.dtype(known["typestr"])
    found = machine.device.find(address)
    if found is None:
        raise ValueError(f"{address:#x} is no address of memory on the GPU")
    strides = known.get("strides")
    start = address - found.address
    view = np.ndarray(shape, dtype, np.asarray(found.array), start, strides)
    own = found.array.of_its_memory if isinstance(found.array, Unset) else np.asarray
    return np.ndarray.view(own(view), kind)

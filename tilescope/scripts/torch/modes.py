"""PyTorch modes by which ``device="cuda"`` refers to a simulated GPU.

The function mode receives each function that a script calls, with its device argument. The dispatch
mode receives each resulting operator, in backward passes as well. Results of tensors on the GPU are
on the GPU. The module is imported together with PyTorch.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.overrides import _get_current_function_mode_stack as _modes
from torch.utils._device import DeviceContext, _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.arguments.adapter import as_array

from ..virtual_device import refuse
from .device_tags import CPU, TorchDeviceTags, on_gpu, ordinal, storage_of, tensors_in

_MIXING = {
    "to", "copy_", "__getitem__", "__setitem__", "index_put", "index_put_", "set_", "__set__",
    "type_as", "expand_as", "view_as", "reshape_as", "is_same_size", "tensor_split",
    "_pack_padded_sequence", "ctc_loss",
}  # fmt: skip
"""What takes tensors of the host beside those of the GPU."""
_VIEWED = {"detach", "alias", "set_"}
_WAITS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Operators(TorchDispatchMode):  # type: ignore[misc]
    """Dispatch mode: tags the results of every operator and reports its accesses."""

    def __init__(self, places: TorchDeviceTags) -> None:
        super().__init__()
        self._places = places

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip it is to import it, which takes seconds

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        places, kwargs, there = self._places, dict(kwargs or {}), self._places.there
        if kwargs.get("device") is not None:
            there = on_gpu(kwargs["device"]) or there
            kwargs["device"] = CPU
        pinned = bool(kwargs.pop("pin_memory", None))
        given = tensors_in(args, kwargs)
        if there is None:
            there = any(map(places.has, given)) if given else places.backward
        before = set(map(storage_of, given))
        if there and torch.Tag.nondeterministic_seeded in function.tags:
            with self._random():
                made = function(*args, **kwargs)
        else:
            made = function(*args, **kwargs)
        fresh = [one for one in tensors_in(made) if storage_of(one) not in before]
        name = function._schema.name.partition("::")[2]
        if name == "_to_copy" and kwargs.get("non_blocking") and not there:
            pinned |= any(map(places.has, given))  # PyTorch makes the copy so
        for one in fresh if there or pinned else ():
            places.mark(one, pinned=not there)
            if there and name.startswith(("empty", "new_empty")):
                places.never_written(one)
        touched = _touched(function._schema, args, kwargs)
        for one in (one for one, how in touched if how == "store" and name != "resize_"):
            places.wrote(one)
        if places.backward is None:
            self._tell(function, name, args, kwargs, touched + [(one, "store") for one in fresh])
        return made

    @contextlib.contextmanager
    def _random(self) -> Iterator[None]:
        """The GPU has a generator of its own."""
        usual, own = torch.default_generator, self._places.generator
        state = usual.get_state()
        usual.set_state(own.get_state())
        try:
            yield
        finally:
            own.set_state(usual.get_state())
            usual.set_state(state)

    def _tell(
        self, function: Any, name: str, args: Any, kwargs: Any, how: list[tuple[Any, str]]
    ) -> None:
        """The order between launches takes in what an operator does to memory of the GPU."""
        places = self._places
        if function.is_view or name in _VIEWED or name.startswith("empty"):
            return
        said = {"load": "its input", "store": "its output"}
        reached = [(one, way) for one, way in how if places.has(one) or places.pinned(one)]
        accesses = [(as_array(one), said[way], way) for one, way in reached]
        if any(places.has(one) for one, _ in reached):
            host = [one for one, _ in how if not places.has(one) and one.dim()]
            free = kwargs.get("non_blocking") or (name == "copy_" and args[2:] and args[2])
            free = free and all(map(places.pinned, host))
            waits = bool(host and not free) or name in ("_local_scalar_dense", "equal")
            waits |= bool(_WAITS & set(function.tags))
            places.machine.did(f"torch.{name}", None, waits, accesses)
        else:
            for array, _, way in accesses:
                places.machine.host(array, way)


def _touched(schema: Any, args: Any, kwargs: Any) -> list[tuple[Any, str]]:
    """An operator's operands that are tensors, and whether it writes them or reads them."""
    found = []
    values = [*args, *(kwargs.get(one.name) for one in schema.arguments[len(args) :])]
    for argument, value in zip(schema.arguments, values, strict=True):
        wrote = argument.alias_info is not None and argument.alias_info.is_write
        found += [(one, "store" if wrote else "load") for one in tensors_in(value)]
    return found


class Calls(TorchFunctionMode):  # type: ignore[misc]
    """Every function that a script calls passes here, with the device that it names."""

    def __init__(self, places: TorchDeviceTags) -> None:
        super().__init__()
        self._places = places
        self._own: dict[str, Callable[..., Any]] = {
            "to": places.to, "cuda": self._cuda, "data_ptr": self._data_ptr,
            "cpu": lambda value, **_: places.move(value, False),
            "type": self._type, "type_as": places.to, "pin_memory": self._pin,
            "is_pinned": lambda value, *_: places.pinned(value),
            "__repr__": lambda value, **_: torch._tensor_str._str(value),
        }  # fmt: skip

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        places, kwargs = self._places, dict(kwargs or {})
        name = getattr(function, "__name__", "")
        method = bool(args) and getattr(torch.Tensor, name, None) is function
        if name == "__format__" and args[0].dim():
            return object.__format__(args[0], args[1])
        if method and name in self._own:
            with places.making(None):
                return self._own[name](*args, **kwargs)
        given = tensors_in(args, kwargs)
        gpu = [value for value in given if places.has(value)]
        if gpu and (name in ("numpy", "__array__", "__dlpack__", "data_ptr", "tolist") and method):
            self._read(name, gpu[0])
        device = kwargs.pop("device", None)
        if device is None and function in _device_constructors():
            device = self._default()
        if device is None:
            there = True if gpu else None
        else:
            there = on_gpu(device)
        if device is not None:
            kwargs["device"] = CPU if there else device
        if gpu and len(gpu) < len(given):
            self._one_device(function, name, given)
        with places.making(there):
            made = function(*args, **kwargs)
            converts = name in ("tensor", "as_tensor", "asarray") and isinstance(made, torch.Tensor)
            return places.move(made, bool(there)) if converts else made

    def _default(self) -> Any:
        """The device of ``with torch.device(...)`` or ``set_default_device``."""
        modes = [one for one in _modes() if isinstance(one, DeviceContext)]
        return modes[-1].device if modes else None

    def _read(self, name: str, value: Any) -> None:
        if name in ("numpy", "__array__"):
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        if name == "__dlpack__":
            refuse("handing tensors to other libraries (DLPack)", "use Tensor.cpu() first")()
        if name == "tolist":
            accesses = [(as_array(value), "its input", "load")]
            self._places.machine.did("torch.tolist", None, True, accesses)

    def _one_device(self, function: Any, name: str, given: list[Any]) -> None:
        """Refuse to compute with tensors of two devices, as PyTorch does."""
        host = [one for one in given if one.dim() and not self._places.has(one)]
        private = name.startswith("_") and not name.startswith("__")
        if host and not hasattr(function, "__code__") and not private and name not in _MIXING:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:0 and cpu! (torch.{name})"
            )

    def _data_ptr(self, value: Any) -> int:
        if self._places.has(value) and value.numel():
            return self._places.address(value)
        return int(torch.Tensor.data_ptr(value))

    def _cuda(self, value: Any, device: Any = None, non_blocking: bool = False, **_: Any) -> Any:
        ordinal(device)
        return self._places.move(value, True, non_blocking=non_blocking)

    def _type(self, value: Any, dtype: Any = None, *_: Any, **named: Any) -> Any:
        if dtype is None:
            name = torch.Tensor.type(value)
            return name.replace("torch.", "torch.cuda.") if self._places.has(value) else name
        if "cuda" in f"{dtype}":
            refuse(f"Tensor.type({dtype})", "use Tensor.to('cuda', dtype)")()
        return torch.Tensor.type(value, dtype, **named)

    def _pin(self, value: Any, *_: Any) -> Any:
        if self._places.has(value):
            raise RuntimeError("cannot pin 'torch.cuda' memory: only CPU memory can be pinned")
        made = value.clone()
        self._places.mark(made, pinned=True)
        return made

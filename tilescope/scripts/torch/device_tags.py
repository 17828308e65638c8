"""Which of PyTorch's tensors are "on a GPU": memory of the host that says it is not.

Whether a tensor is there is a mark of its storage, so that views and copies of the tensor object
have it too. It is imported with PyTorch.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_flatten

from kernels.arguments.adapter import as_array
from kernels.arguments.uninitialised import Unset
from simulator.memory.storage.device import DeviceAllocation

from ..virtual_device import RefusedError, VirtualDevice, refuse

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def ordinal(device: Any) -> int:
    """The number of the one GPU that there is.

    Raises:
        RefusedError: Another one is meant.
    """
    if isinstance(device, (str, torch.device)):
        device = torch.device(device).index
    if device not in (None, 0, -1):
        raise RefusedError(f"tilescope exec simulates one GPU: there is no cuda:{device}; use cuda")
    return 0


def on_gpu(device: Any) -> bool:
    """Whether a device as scripts name it is the GPU."""
    if isinstance(device, int) and not isinstance(device, bool):
        device = torch.device("cuda", device)
    if isinstance(device, str):
        device = torch.device(device)
    if device.type == "cuda":
        ordinal(device)
    return bool(device.type == "cuda")


@dataclass
class TorchDeviceTags:
    """Which storages are the GPU's, and which are pinned.

    Attributes:
        there: Where what the running call makes is: ``None``: as what it is made from.
        generator: What random numbers on the GPU come from.
        backward: In a backward pass: where it makes what it makes of nothing; ``None``: in none.
    """

    machine: VirtualDevice
    there: bool | None = None
    generator: Any = field(default_factory=torch.Generator)
    backward: bool | None = None
    _gpu: dict[int, Any] = field(default_factory=dict)
    _pinned: dict[int, Any] = field(default_factory=dict)
    _unset: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def has(self, value: Any) -> bool:
        """Whether a tensor is on the GPU."""
        return storage_of(value) in self._gpu

    def __contains__(self, storage: int) -> bool:
        return storage in self._gpu

    def pinned(self, value: Any) -> bool:
        """Whether a tensor of the host was asked for as pinned."""
        return storage_of(value) in self._pinned

    def mark(self, value: Any, pinned: bool = False) -> None:
        """From now on a tensor's storage is on the GPU (or pinned)."""
        if not storage_of(value):
            refuse("tensors on cuda that are not dense", "use Tensor.to_dense()")()
        with torch._C.DisableTorchFunction():
            self.mark_storage(value.untyped_storage(), pinned)

    def mark_storage(self, storage: Any, pinned: bool = False) -> None:
        """Mark a storage, as ``mark`` does a tensor's."""
        marks = self._pinned if pinned else self._gpu
        if len(marks) % 256 == 255:
            for number in [n for n, reference in marks.items() if reference.expired()]:
                del marks[number]  # a kept weak reference keeps the number from being used again
        marks[storage._cdata] = StorageWeakRef(storage)

    def never_written(self, value: Any) -> None:
        """Mark a tensor's memory as uninitialised, so that launches report reads of it."""
        with torch._C.DisableTorchFunction():
            storage = value.untyped_storage()
            torch.empty(0, dtype=torch.uint8).set_(storage).fill_(0xFF)
            for number in [n for n, (reference, _) in self._unset.items() if reference.expired()]:
                del self._unset[number]
            flags = np.full(storage.nbytes(), 0xFF, np.uint8)
            self._unset[storage._cdata] = StorageWeakRef(storage), flags

    def wrote(self, value: Any) -> None:
        """An operator wrote all of a tensor."""
        if storage_of(value) in self._unset:
            self.array(value).missing[...] = 0

    def array(self, value: Any) -> Any:
        """A tensor as a launch takes it: an array that knows what of it nothing wrote."""
        made = as_array(value)
        if isinstance(value, torch.Tensor) and self.has(value):
            self.allocation(value)
        if isinstance(value, torch.Tensor) and storage_of(value) in self._unset:
            with torch._C.DisableTorchFunction():
                storage = value.untyped_storage()
                begin, flags = storage.data_ptr(), self._flags(storage)
            made = Unset.over(made, begin, flags)
        return made

    def _flags(self, storage: Any) -> Any:
        """Return which bytes of a storage nothing wrote; those that ``resize_`` has added, too."""
        reference, flags = self._unset[storage._cdata]
        nbytes = storage.nbytes()
        if flags.size != nbytes:
            resized = np.full(nbytes, 0xFF, np.uint8)
            resized[: flags.size] = flags[:nbytes]
            self._unset[storage._cdata] = reference, resized
        return self._unset[storage._cdata][1]

    def allocation(self, value: Any) -> DeviceAllocation:
        """The allocation of the device that a tensor's storage is."""
        with torch._C.DisableTorchFunction():
            storage = value.untyped_storage()
            start, nbytes, number = storage.data_ptr(), storage.nbytes(), storage._cdata
        found = self.machine.device.lent(start, nbytes)
        if found is not None:
            return found
        reference = StorageWeakRef(storage)

        def exists() -> bool:
            with torch._C.DisableTorchFunction():
                here = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
                return here is not None and (here.data_ptr(), here.nbytes()) == (start, nbytes)

        flags = (start, self._flags(storage)) if number in self._unset else None
        return self.machine.device.adopt_memory(start, nbytes, exists, flags)

    def address(self, value: Any) -> int:
        """``Tensor.data_ptr`` of a tensor on the GPU."""
        made = self.allocation(value)
        return made.address + int(value.storage_offset() * value.element_size())

    @contextlib.contextmanager
    def making(self, there: bool | None) -> Iterator[None]:
        """Place tensors that are made inside the context on the GPU, or on the host."""
        before, self.there = self.there, there
        try:
            yield
        finally:
            self.there = before

    def move(self, value: Any, there: bool, dtype: Any = None, **how: Any) -> Any:
        """A tensor where it is wanted: itself if it is there."""
        if self.has(value) != there:
            return _Moved.apply(value, self, there, dtype or value.dtype, how)
        return value if dtype in (None, value.dtype) else torch.Tensor.to(value, dtype, **how)

    def to(self, value: Any, *args: Any, copy: bool = False, **named: Any) -> Any:
        """``Tensor.to``."""
        if args and isinstance(args[0], torch.Tensor):
            named = {"device": GPU if self.has(args[0]) else CPU, "dtype": args[0].dtype} | named
            args = args[1:]
        if args and type(args[0]) is int:  # PyTorch asks the machine which accelerator it has
            args = torch.device("cuda", args[0]), *args[1:]
        device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **named)
        there = self.has(value) if device is None else on_gpu(device)
        how = {} if layout is None else {"memory_format": layout}
        made = self.move(value, there, dtype, non_blocking=non_blocking, **how)
        return torch.Tensor.clone(value) if copy and made is value else made


class _Moved(torch.autograd.Function):  # type: ignore[misc]
    """A copy on the other side, whose gradient comes back."""

    @staticmethod
    def forward(ctx: Any, value: Any, places: Any, there: bool, dtype: Any, how: Any) -> Any:
        ctx.back = places, not there, value.dtype
        with torch._C.DisableTorchFunction(), places.making(there):
            return torch.ops.aten._to_copy.default(value, dtype=dtype, **how)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        places, there, dtype = ctx.back
        return places.move(gradient, there, dtype), None, None, None, None


def storage_of(value: Any) -> int:
    """The number of a tensor's storage."""
    try:
        return int(torch._C._storage_id(value))
    except RuntimeError:  # sparse ones have none
        return 0


def tensors_in(*values: Any) -> list[Any]:
    """The tensors among values, and inside of them."""
    return [one for one in tree_flatten(values)[0] if isinstance(one, torch.Tensor)]

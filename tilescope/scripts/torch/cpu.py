"""PyTorch's scripts, for Triton's and Numba's kernels: ``device="cuda"`` without a GPU."""

import functools
import importlib
import pkgutil
from types import ModuleType
from typing import Any

from ..api_surface import replace_public
from ..patches import Patches
from ..virtual_device import VirtualDevice, nothing, refuse


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``torch`` take ``cuda`` for a device that is there."""
    import torch

    from . import names
    from .device_tags import GPU, TorchDeviceTags, on_gpu, ordinal
    from .modes import Calls, Operators

    places = TorchDeviceTags(machine)
    patches.set(machine, "array", places.array)
    patches.set(machine, "tags", places)
    calls, operators = Calls(places), Operators(places)
    own = torch._C.TensorBase

    def attribute(name: str, there: Any) -> Any:
        getter = getattr(own, name).__get__

        def ask(tensor: Any) -> Any:
            if places.has(tensor):
                return there
            with torch._C.DisableTorchFunction():
                return getter(tensor)

        return property(ask)

    for name, there in (("device", GPU), ("is_cuda", True), ("is_cpu", False)):
        patches.set(torch.Tensor, name, attribute(name, there))
    described = torch.Tensor.__cuda_array_interface__.__get__

    def interface(tensor: Any) -> Any:
        with torch._C.DisableTorchFunction():
            found = described(tensor)
        if tensor.numel():
            found["data"] = places.address(tensor), found["data"][1]
        return found

    patches.set(torch.Tensor, "__cuda_array_interface__", property(interface))
    patches.set(torch.Tensor, "get_device", lambda tensor: 0 if tensor.is_cuda else -1)
    patches.set(torch.Tensor, "record_stream", nothing)
    for info in pkgutil.iter_modules(torch.cuda.__path__):
        if not info.name.startswith("_"):
            importlib.import_module(f"torch.cuda.{info.name}")
    offered = names.stand_ins(machine, places)
    replace_public(torch.cuda, patches, offered, names.KEEP, names.advice)
    accelerated = names.of_accelerator(offered)
    replace_public(torch.accelerator, patches, accelerated, (), names.advice)
    patches.set(torch.cuda, "_lazy_init", lambda: None)
    _elsewhere(torch, patches, offered, on_gpu, ordinal)

    run = torch.autograd._engine_run_backward

    def backward(*args: Any, **named: Any) -> Any:
        """The script's own functions in a backward pass are called with the modes on."""
        there = any(places.has(one) for one in args[0] if isinstance(one, torch.Tensor))
        before, places.backward = places.backward, there
        try:
            with calls, places.making(None):
                return run(*args, **named)
        finally:
            places.backward = before

    patches.set(torch.autograd, "_engine_run_backward", backward)

    def tag(storage: Any) -> str | None:
        return "cuda:0" if storage._cdata in places else None

    def restore(storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        ordinal(location)
        places.mark_storage(getattr(storage, "_untyped_storage", storage))
        return storage

    packages = torch.serialization._package_registry
    packages.insert(0, (0, tag, restore))
    patches.later(lambda: packages.remove(next(one for one in packages if one[1] is tag)))
    for mode in (operators, calls):
        mode.__enter__()
        patches.later(functools.partial(mode.__exit__, None, None, None))


def _elsewhere(
    torch: Any, patches: Patches, offered: dict[str, Any], on_gpu: Any, ordinal: Any
) -> None:
    """Replace GPU functions outside of ``torch.cuda``."""
    begin = torch.autocast.__init__

    def autocast(self: Any, device_type: str, *args: Any, **named: Any) -> None:
        if device_type == "cuda" and named.get("enabled", True):
            refuse("torch.autocast('cuda')", "convert by hand, with .to(torch.float16)")()
        begin(self, device_type, *args, **named)

    class Generator(torch.Generator):  # type: ignore[misc]
        """Random generator; on the GPU its numbers differ from those of a real one."""

        def __new__(cls, device: Any = "cpu") -> Any:
            on_gpu(device)
            return super().__new__(cls)

        def __init__(self, device: Any = "cpu") -> None:
            self._device = torch.device("cuda", 0) if on_gpu(device) else torch.device("cpu")

        @property
        def device(self) -> Any:
            """Where it says it is."""
            return self._device

    patches.set(torch.autocast, "__init__", autocast)
    patches.set(torch, "Generator", Generator)
    patches.set(torch, "Stream", offered["Stream"])
    patches.set(torch, "Event", offered["Event"])
    patches.set(torch, "compile", refuse("torch.compile", "call the function itself"))

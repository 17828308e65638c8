"""PyTorch's tensors "on a GPU" for Triton's scripts: memory of the host that says it is not.

A tensor made on, or moved to, ``cuda`` is a copy of its own, as on a GPU; what is computed from
one is one. Of ``torch.cuda``, what Triton's tutorials use has a stand-in.
"""

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from simulator.order import Stream as Queue

from . import machine as stand_in
from .machine import Machine, nothing, refuse
from .patches import Patches

_MARK = "_tilescope_cuda"
_KEPT = ("is_initialized", "is_current_stream_capturing", "init", "is_bf16_supported")


def install(module: ModuleType, patches: Patches, machine: Machine) -> None:
    """Have ``torch`` take ``cuda`` for a device that is there."""
    import torch
    from torch.overrides import TorchFunctionMode

    there = torch.device("cuda", 0)

    def is_cuda(value: Any) -> bool:
        if isinstance(value, torch.device):
            return bool(value.type == "cuda")
        return isinstance(value, str) and value.partition(":")[0] == "cuda"

    def is_place(value: Any) -> bool:
        return isinstance(value, torch.device) or (
            isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu")
        )

    def marked(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return any(map(marked, value))
        return isinstance(value, torch.Tensor) and _MARK in value.__dict__

    def mark(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            value.__dict__[_MARK] = True
        elif isinstance(value, (list, tuple)):
            for one in value:
                mark(one)
        return value

    class Simulated(TorchFunctionMode):  # type: ignore[misc]
        """Every call of PyTorch's passes here, with the device that it names."""

        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            name = getattr(function, "__name__", "")
            if function in (torch.Tensor.device.__get__, torch.Tensor.is_cuda.__get__):
                if not marked(args[0]):
                    return function(*args)
                return there if function == torch.Tensor.device.__get__ else True
            if name in ("cuda", "cpu") and isinstance(args[0], torch.Tensor):
                return move(args[0], name == "cuda")
            place = kwargs.pop("device", None)
            if name == "to" and place is None:
                place = next((value for value in args[1:] if is_place(value)), None)
                args = tuple(value for value in args if not is_place(value))
            if name == "to" and place is not None:
                rest = bool(args[1:] or {k: v for k, v in kwargs.items() if k == "dtype"})
                made = function(*args, **kwargs) if rest else args[0]
                return move(made if rest else args[0], is_cuda(place), made is not args[0])
            if place is not None and not is_cuda(place):
                return function(*args, device=place, **kwargs)
            made = function(*args, **kwargs)
            if is_cuda(place) or marked(args) or marked(tuple(kwargs.values())):
                return mark(made)
            return made

    def move(value: Any, to_cuda: bool, fresh: bool = False) -> Any:
        if to_cuda == marked(value) and not fresh:
            return value
        with torch._C.DisableTorchFunction():
            made = value if fresh else value.clone()
        return mark(made) if to_cuda else made

    mode = Simulated()
    mode.__enter__()
    patches.later(lambda: mode.__exit__(None, None, None))
    replaced = _cuda(machine)
    for name in dir(torch.cuda):
        value = getattr(torch.cuda, name)
        if name in replaced:
            patches.set(torch.cuda, name, replaced[name])
        elif not name.startswith("_") and name not in _KEPT and type(value).__name__ == "function":
            patches.set(torch.cuda, name, refuse(f"torch.cuda.{name}"))


def _cuda(machine: Machine) -> dict[str, Any]:
    """What ``torch.cuda`` offers, for a machine without a GPU."""
    order = machine.order

    class Event(stand_in.Event):
        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__(machine)

    class Stream(stand_in.Stream):
        """PyTorch's own streams do not wait for the default stream."""

        def __init__(self, *_: Any, queue: Queue | None = None, **__: Any) -> None:
            super().__init__(queue or order.stream(blocking=False))
            self.cuda_stream = self.queue.number

        def __eq__(self, other: Any) -> bool:
            return isinstance(other, Stream) and other.queue is self.queue

        def __hash__(self) -> int:
            return hash(self.queue.number)

        def wait_stream(self, stream: Any) -> None:
            """Wait for all that is in another stream."""
            self.queue.wait(stream.queue)

        def wait_event(self, event: Any) -> None:
            """Wait for an event."""
            event.wait(self)

        def record_event(self, event: Any = None) -> Any:
            """An event behind all that is in it."""
            made = event or Event()
            made.record(self)
            return made

    @contextlib.contextmanager
    def within(*_: Any, **__: Any) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def in_stream(stream: Any) -> Iterator[None]:
        with order.on(machine.queue(stream)):
            yield

    def set_stream(stream: Any) -> None:
        order.current = stream.queue

    def synchronize(device: Any = None) -> None:
        order.synchronize()

    properties = stand_in.setting(
        {"name": stand_in.NAME, "major": 9, "minor": 0, "multi_processor_count": 132,
         "total_memory": 1 << 37, "max_threads_per_multi_processor": 2048, "warp_size": 32,
         "regs_per_multiprocessor": 65_536, "shared_memory_per_block_optin": 232_448}
    )()  # fmt: skip
    return {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "set_device": nothing, "synchronize": synchronize, "empty_cache": nothing,
        "current_stream": lambda device=None: Stream(queue=order.current),
        "default_stream": lambda device=None: Stream(queue=order.legacy),
        "Stream": Stream, "Event": Event, "stream": in_stream, "set_stream": set_stream,
        "device": within, "manual_seed": nothing, "manual_seed_all": nothing,
        "get_device_name": lambda device=None: stand_in.NAME,
        "get_device_capability": lambda device=None: stand_in.CAPABILITY,
        "get_device_properties": lambda device=None: properties,
    }  # fmt: skip

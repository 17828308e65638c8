"""Names of ``torch.cuda`` and ``torch.accelerator``, for a machine without a GPU."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from simulator.host_order import Stream as Queue

from .. import virtual_device as stand_in
from ..virtual_device import VirtualDevice, nothing, refuse
from .device_tags import GPU, TorchDeviceTags, ordinal

KEEP = (
    "is_bf16_supported", "is_tf32_supported", "amp.custom_fwd", "amp.custom_bwd", "amp.GradScaler",
    "amp.grad_scaler.GradScaler", "amp.grad_scaler.OptState", "cudaStatus", "Device",
)  # fmt: skip
"""PyTorch's own, which ask what has a stand-in."""


def advice(name: str) -> str:
    """Return advice for a script that uses an unsupported name of ``torch.cuda``."""
    for words, instead in (
        (("raph", "export_d", "capture"), "launch without a graph"),
        (("nccl", "comm", "peer"), "one GPU is simulated"),
        (("Tensor", "Storage"), "use torch.tensor(..., device='cuda')"),
        (("autocast",), "convert by hand, with .to(torch.float16)"),
        (("memory", "alloc", "Pool"), "what memory a GPU takes is not known: leave it out"),
        (("xternal", "ipc"), "use torch.cuda.Stream()"),
        (("jiterator",), "write the kernel in Triton"),
    ):
        if any(word in name for word in words):
            return instead
    return "leave it out"


def stand_ins(machine: VirtualDevice, places: TorchDeviceTags) -> dict[str, Any]:
    """Return the stand-ins by their names in ``torch.cuda``."""
    order = machine.order

    class TorchEvent(stand_in.SimulatedEvent):
        device = GPU
        ipc_handle = from_ipc_handle = refuse("events of other processes", "use one process")

        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__(machine)

    class TorchStream(stand_in.SimulatedStream):
        """PyTorch's own streams do not wait for the default stream."""

        device, device_index, priority = GPU, 0, 0

        def __init__(
            self, device: Any = None, priority: int = 0, *, queue: Queue | None = None, **__: Any
        ) -> None:
            ordinal(device)
            super().__init__(queue or order.stream(blocking=False))
            self.cuda_stream = self.stream_id = self.queue.number
            self._within: list[Any] = []

        def __eq__(self, other: Any) -> bool:
            return isinstance(other, TorchStream) and other.queue is self.queue

        def __hash__(self) -> int:
            return hash(self.queue.number)

        def __enter__(self) -> Any:
            self._within.append(order.on(self.queue))
            self._within[-1].__enter__()
            return self

        def __exit__(self, *error: Any) -> None:
            self._within.pop().__exit__(*error)

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, self.cuda_stream

        @staticmethod
        def is_capturing() -> bool:
            """Whether a graph is being made of it."""
            return False

        @staticmethod
        def priority_range() -> tuple[int, int]:
            """The lowest and the highest."""
            return 0, -5

        def wait_stream(self, stream: Any) -> None:
            """Wait for all that is in another stream."""
            self.queue.wait(stream.queue)

        def wait_event(self, event: Any) -> None:
            """Wait for an event."""
            event.wait(self)

        def record_event(self, event: Any = None) -> Any:
            """An event behind all that is in it."""
            made = event or TorchEvent()
            made.record(self)
            return made

    class StreamContext(contextlib.ContextDecorator):
        """``with torch.cuda.stream(s):``."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream or TorchStream(queue=order.current)

        def __enter__(self) -> None:
            self._stream.__enter__()

        def __exit__(self, *error: Any) -> None:
            self._stream.__exit__(*error)

    class TorchDevice(contextlib.ContextDecorator):
        """``with torch.cuda.device(0):``, and of a tensor's."""

        def __init__(self, device: Any) -> None:
            self.idx = ordinal(getattr(device, "device", device))

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: Any) -> None:
            pass

    def of(value: Any) -> Any:
        """A function that gives this, of the one GPU."""

        def given(device: Any = None) -> Any:
            ordinal(device)
            return value() if callable(value) else value

        return given

    @contextlib.contextmanager
    def within(*_: Any, **__: Any) -> Iterator[None]:
        yield

    def set_stream(stream: Any) -> None:
        order.current = stream.queue

    def seed_all() -> None:
        generator.seed()

    generator = places.generator
    properties = stand_in.setting(
        {"name": stand_in.NAME, "major": 9, "minor": 0, "multi_processor_count": 132,
         "total_memory": 1 << 37, "max_threads_per_multi_processor": 2048, "warp_size": 32,
         "max_threads_per_block": 1024, "shared_memory_per_block": 49_152,
         "shared_memory_per_multiprocessor": 233_472, "L2_cache_size": 62_914_560,
         "regs_per_multiprocessor": 65_536, "shared_memory_per_block_optin": 232_448,
         "is_integrated": 0, "is_multi_gpu_board": 0}
    )()  # fmt: skip
    return {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "is_initialized": lambda: True, "init": nothing, "set_device": of(None),
        "synchronize": of(order.synchronize), "empty_cache": nothing, "ipc_collect": nothing,
        "current_stream": of(lambda: TorchStream(queue=order.current)),
        "default_stream": of(lambda: TorchStream(queue=order.legacy)),
        "Stream": TorchStream, "Event": TorchEvent,
        "stream": StreamContext, "StreamContext": StreamContext,
        "set_stream": set_stream, "is_current_stream_capturing": lambda: False,
        "device": TorchDevice, "device_of": TorchDevice,
        "get_device_name": of(stand_in.NAME), "get_device_capability": of(stand_in.CAPABILITY),
        "get_device_properties": of(properties), "get_arch_list": lambda: ["sm_90"],
        "mem_get_info": of((1 << 36, 1 << 37)), "default_generators": (generator,),
        "manual_seed": generator.manual_seed, "manual_seed_all": generator.manual_seed,
        "seed": seed_all, "seed_all": seed_all, "initial_seed": generator.initial_seed,
        "get_rng_state": of(generator.get_state), "get_rng_state_all": lambda: [
            generator.get_state()],
        "set_rng_state": lambda state, device=None: generator.set_state(state),
        "set_rng_state_all": lambda states: generator.set_state(states[0]),
        "nvtx.range_push": nothing, "nvtx.range_pop": nothing, "nvtx.mark": nothing,
        "nvtx.range_start": nothing, "nvtx.range_end": nothing, "nvtx.range": within,
        "profiler.start": nothing, "profiler.stop": nothing, "profiler.profile": within,
    }  # fmt: skip


def of_accelerator(cuda: dict[str, Any]) -> dict[str, Any]:
    """Return the stand-ins by their names in ``torch.accelerator``."""
    same = ("is_available", "device_count", "synchronize", "current_stream", "set_stream",
            "empty_cache", "get_device_capability")  # fmt: skip
    return {
        **{name: cuda[name] for name in same},
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": cuda["current_device"],
        "current_device_idx": cuda["current_device"],
        "set_device_index": cuda["set_device"], "set_device_idx": cuda["set_device"],
        "device_index": cuda["device"], "get_memory_info": cuda["mem_get_info"],
    }  # fmt: skip

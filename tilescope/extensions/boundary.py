"""Tensors on their way between a script and an extension; imported together with PyTorch.

A tensor that the script has on the GPU enters the extension as one of the device ``cuda:0`` over
the same memory (``bridge.cpp``). While the extension runs, a dispatch mode executes its operators
on the script's tensors.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from ..scripts.torch.device_tags import TorchDeviceTags
from ..scripts.virtual_device import refuse
from ..sessions.recording import user_line
from .in_process import ExtensionRuntime


class Boundary:
    """The way of tensors into the extensions of a script and back.

    Args:
        bridge: The module of ``bridge.cpp``.
        runtime: Answers calls of the CUDA runtime.
        tags: Which of the script's tensors are on the GPU.
    """

    def __init__(self, bridge: Any, runtime: ExtensionRuntime, tags: TorchDeviceTags) -> None:
        self.bridge, self.runtime, self.tags = bridge, runtime, tags
        self._mode = _ExtensionOperators(self)

    def enter(self, tensor: Any) -> Any:
        """Return a tensor as the extension takes it."""
        if not self.tags.has(tensor):
            return tensor
        if tensor.is_complex() and tensor.is_conj():
            refuse("conjugate views given to an extension", "use Tensor.resolve_conj() first")()
        return self.bridge.to_device(tensor, self._address(tensor))

    def _address(self, tensor: Any) -> int:
        """Return the device address of the first byte of a tensor's storage."""
        with torch._C.DisableTorchFunction():
            nbytes = tensor.untyped_storage().nbytes()
        return self.tags.allocation(tensor).address if nbytes else 0

    def leave(self, tensor: Any) -> Any:
        """Return a tensor as the script has it."""
        made = self.bridge.to_host(tensor)
        if made is None:
            refuse(
                "torch::from_blob of memory on the device", "copy it into a tensor of torch::empty"
            )()
        return made

    def refresh(self, device: Any, host: Any) -> None:
        """Make a tensor of the extension the same as the script's one behind it."""
        self.bridge.refresh(device, host, self._address(host))

    def call(self, function: Callable[..., Any], args: Any, named: Any) -> Any:
        """Call a function of an extension.

        Raises:
            RefusedError: It asks for what has no stand-in.
        """
        given: dict[int, tuple[Any, Any]] = {}

        def enter(tensor: Any) -> Any:
            made = self.enter(tensor)
            given[id(made)] = tensor, made
            return made

        def leave(tensor: Any) -> Any:
            return given[id(tensor)][0] if id(tensor) in given else self.leave(tensor)

        args, named = tree_map_only(torch.Tensor, enter, (args, named))
        runtime, order = self.runtime, self.tags.machine.order
        runtime.script_line = user_line()
        self.bridge.set_stream(runtime.streams.handle_of(order.current))
        try:
            with self._mode:
                made = function(*args, **named)
        finally:
            for host, device in given.values():
                if host is not device:
                    self.bridge.carry_back(host, device)
            order.current = runtime.streams.find(self.bridge.stream())
            runtime.calls.flush()
            runtime.calls.raise_error()
        return tree_map_only(torch.Tensor, leave, made)

    def wrap(self, module: ModuleType) -> None:
        """Replace the functions of an extension, and the methods of its classes."""
        for name, value in list(vars(module).items()):
            if isinstance(value, type):
                for inner, method in list(vars(value).items()):
                    if callable(method) and (inner == "__init__" or inner[:2] != "__"):
                        setattr(value, inner, self._wrapped(method))
            elif callable(value):
                setattr(module, name, self._wrapped(value))

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            return self.call(function, args, named)

        return call


class _ExtensionOperators(TorchDispatchMode):  # type: ignore[misc]
    """Dispatch mode for operators that an extension calls: executes them for the script's side."""

    def __init__(self, boundary: Boundary) -> None:
        super().__init__()
        self._boundary = boundary

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as Operators

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.ops.aten.record_stream.default:
            return None  # no memory is used again before its tensor is gone
        boundary, given = self._boundary, dict[int, tuple[Any, Any]]()
        runtime, tags = boundary.runtime, boundary.tags

        def leave(tensor: Any) -> Any:
            made = boundary.leave(tensor)
            given[id(made)] = made, tensor
            return made

        def enter(tensor: Any) -> Any:
            if id(tensor) not in given:
                return boundary.enter(tensor)
            host, device = given[id(tensor)]
            if host is not device:
                boundary.refresh(device, host)
            return device

        args, kwargs = tree_map_only(torch.Tensor, leave, (args, kwargs or {}))
        stream = runtime.streams.find(boundary.bridge.stream())
        with tags.making(None), tags.machine.order.on(stream):
            made = function(*args, **kwargs)
        return tree_map_only(torch.Tensor, enter, made)

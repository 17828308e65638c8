"""Triton's scripts: ``kernel[grid](...)`` with NumPy arrays or PyTorch's tensors.

Triton takes any driver (``triton.runtime.driver.set_active``). A compiled kernel carries its PTX;
it is handed on in place of the binary that a driver would have loaded.
"""

import inspect
from types import ModuleType
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.front_ends import triton_jit as front_end
from kernels.front_ends.versions import warn_of
from simulator import Device

from . import virtual_device as stand_in
from .patches import Patches
from .virtual_device import VirtualDevice, nothing


class Tensor:
    """A NumPy array as Triton takes tensors: with a pointer and a dtype."""

    def __init__(self, array: Any, device: Device) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self._device = device

    def data_ptr(self) -> int:
        """Return the address, whose alignment Triton asks for."""
        return self._device.address_of(self.array)


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``triton`` launch on the simulator."""
    import triton
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import autotuner, driver, jit
    from triton.tools.tensor_descriptor import TensorDescriptor

    warn_of("Triton", triton.__version__)
    kernels: dict[str, Kernel] = {}

    class TritonLauncher:
        """Launcher that a compiled kernel calls with the user's arguments."""

        def __init__(self, made: Any) -> None:
            source, function = made.src, made.src.fn
            self.block = 32 * made.metadata.num_warps, 1, 1
            kinds = list(source.signature.values())
            self.places = [i for i, kind in enumerate(kinds) if kind != "constexpr"]
            names = list(source.signature)
            key = made.metadata.hash
            if key not in kernels:
                kernels[key] = Kernel.from_front_end(
                    front_end.from_compiled(
                        made, function, [names[i] for i in self.places],
                        [str(kinds[i]) for i in self.places], (),
                    )
                )  # fmt: skip
            self.kernel = kernels[key]
            self.cooperative = bool(made.metadata.launch_cooperative_grid)

        def __call__(self, *given: Any) -> None:
            x, y, z, _stream, _function, _packed, _metadata, _enter, _leave, *args = given
            _reachable(args)
            values = [machine.array(_array(args[i])) for i in self.places]
            machine.launch(self.kernel, (x, y, z), self.block, values, cooperative=self.cooperative)

    def handles(self: Any) -> None:
        if self.module is None:
            self._run = TritonLauncher(self)
            self.module = self.function = self
            self.n_regs = self.n_spills = 0
            self.n_max_threads = 1024

    def tensor(value: Any) -> Any:
        return Tensor(value, machine.device) if isinstance(value, np.ndarray) else value

    run = jit.JITFunction.run

    def with_arrays(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        named = {name: tensor(value) for name, value in options.items()}
        return run(self, *map(tensor, args), grid=grid, warmup=warmup, **named)

    tune = autotuner.Autotuner.run

    def first_configuration(self: Any, *args: Any, **options: Any) -> Any:
        self.configs = self.configs[:1]
        return tune(self, *args, **options)

    describe = TensorDescriptor.__post_init__

    def with_array(self: Any) -> None:
        self.base = tensor(self.base)
        describe(self)

    patches.set(TensorDescriptor, "__post_init__", with_array)
    patches.set(driver, "_active", _driver())
    patches.set(CompiledKernel, "_init_handles", handles)
    patches.set(jit.JITFunction, "run", with_arrays)
    patches.set(autotuner.Autotuner, "run", first_configuration)
    import triton.testing

    for name in ("do_bench", "do_bench_cudagraph"):
        patches.set(triton.testing, name, _once)


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value


def _reachable(args: Any) -> None:
    """Refuse host tensors beside tensors of the GPU, as Triton does (all on the host: fine)."""
    places = [getattr(arg, "is_cuda", None) for arg in args]
    if any(places):
        for number, (there, arg) in enumerate(zip(places, args, strict=True)):
            if there is False and not arg.is_pinned():
                raise ValueError(
                    f"Pointer argument (at {number}) cannot be accessed from Triton (cpu tensor?)"
                )


def _once(function: Any, *_: Any, quantiles: Any = None, return_mode: str = "mean",
          **__: Any) -> Any:  # fmt: skip
    """Run what is to be timed one time; of its time nothing is known."""
    function()
    if quantiles is None:
        return float("nan")
    return [float("nan")] * len(quantiles)


def _driver() -> Any:
    """Return the stand-in for Triton's driver."""
    from triton.backends.compiler import GPUTarget

    major, minor = stand_in.CAPABILITY
    target = GPUTarget("cuda", major * 10 + minor, 32)
    utils = stand_in.setting(
        {"get_device_properties": staticmethod(lambda device: stand_in.PROPERTIES),
         "unload_module": staticmethod(nothing)}
    )()  # fmt: skip

    def device() -> Any:
        import torch

        return torch.device("cuda", 0)

    def interface() -> Any:
        import torch

        return torch.cuda

    asked = {
        "get_device_interface": interface,
        "get_current_target": lambda: target, "get_current_device": lambda: 0,
        "set_current_device": nothing, "get_current_stream": lambda device=None: 0,
        "get_device_capability": lambda device=0: stand_in.CAPABILITY,
        "get_active_torch_device": device, "get_benchmarker": lambda: _once,
        "get_empty_cache_for_benchmark": lambda: np.zeros(1), "clear_cache": nothing,
        "is_active": lambda: True, "utils": utils,
    }  # fmt: skip
    methods = {n: staticmethod(v) if inspect.isfunction(v) else v for n, v in asked.items()}
    return stand_in.setting(methods)()

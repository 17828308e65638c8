"""``torch.utils.cpp_extension`` under ``tilescope exec``."""

import functools
import importlib.machinery
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from kernels.source.mangling import plain_symbol

from ..cli.progress import WaitBar
from ..programs.compile import CompilationError
from ..programs.libraries import cublas, cufft, curand, cusparse  # noqa: F401 - they fill the table
from ..programs.runtime import stand_ins  # noqa: F401 - it fills the table of calls
from ..programs.shim.build import ShimError
from ..scripts.patches import Patches
from ..scripts.virtual_device import RefusedError, VirtualDevice, refuse
from . import build
from .in_process import ExtensionRuntime
from .sources import with_line

_UNDEFINED = re.compile(r"undefined symbol: (\w+)")


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Build extensions for the simulator; their text is made by PyTorch's own functions."""
    compile_inline, compile_files = module.load_inline, module._jit_compile

    @functools.wraps(compile_inline)
    def load_inline(*args: Any, **named: Any) -> Any:
        bound = inspect.signature(compile_inline).bind(*args, **named)
        given = bound.arguments
        for kind in ("cpp_sources", "cuda_sources"):
            texts = given.get(kind) or []
            given[kind] = [with_line(one) for one in ([texts] if isinstance(texts, str) else texts)]
        if given["cpp_sources"]:
            given["cpp_sources"].append('#line 1 "bindings"')
        given.pop("use_pch", None)
        folder = build.cache_folder() / f"source-{build.digest(sorted(given.items()))}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        given["build_directory"] = str(folder)
        return compile_inline(*bound.args, **bound.kwargs)

    @functools.wraps(compile_files)
    def jit_compile(*args: Any, **named: Any) -> Any:
        given = inspect.signature(compile_files).bind(*args, **named).arguments
        if not given.get("is_python_module", True) or given.get("is_standalone"):
            refuse("extensions that are no Python modules", "use is_python_module=True")()
        return _ExtensionLoader(machine, patches).load(given)

    patches.set(module, "load_inline", load_inline)
    patches.set(module, "_jit_compile", jit_compile)
    patches.set(module, "_get_build_directory", lambda *_: str(build.cache_folder()))


class _ExtensionLoader:
    """Compiles an extension and imports it."""

    def __init__(self, machine: VirtualDevice, patches: Patches) -> None:
        self._machine, self._patches = machine, patches

    def load(self, given: dict[str, Any]) -> ModuleType:
        """Return the module of an extension, by PyTorch's words for it.

        Raises:
            RefusedError: Something is missing to build it, or it uses what has no stand-in.
            RuntimeError: A compiler refuses it.
        """
        name = given["name"]
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"the name of an extension is an identifier, not {name!r}")
        sources = given["sources"]
        words = (
            given.get(key) or ()
            for key in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
        )
        paths = [sources] if isinstance(sources, str) else sources
        source = build.ExtensionSource(name, tuple(map(Path, paths)), *map(tuple, words))
        try:
            with WaitBar(f"nvcc {name}", self._machine.quiet, hint=""):
                boundary = self._boundary()
                library = source.library()
        except (CompilationError, ShimError) as error:
            raise RefusedError(str(error)) from None
        except build.BuildError as error:
            raise RuntimeError(f"Error building extension '{name}':\n{error}") from None
        try:
            made = _import(name, library)
        except ImportError as error:
            missing = _UNDEFINED.search(str(error))
            if missing is None:
                raise
            refuse(f"{plain_symbol(missing[1])}, which extension {name} calls")()
        boundary.runtime.calls.raise_error()
        boundary.wrap(made)
        return made

    def _boundary(self) -> Any:
        """Return the boundary of the script's extensions, made for the first one."""
        from .boundary import Boundary

        machine = self._machine
        if machine.extensions is None:
            bridge: Any = _import(build.BRIDGE, build.bridge())
            runtime = ExtensionRuntime(machine)
            bridge.set_answer(runtime.calls.address)
            self._patches.later(functools.partial(bridge.set_answer, 0))
            machine.extensions = Boundary(bridge, runtime, machine.tags)
        return machine.extensions


def _import(name: str, library: Path) -> ModuleType:
    """Import a compiled module from its file; its name in ``sys.modules`` stays as it was."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module

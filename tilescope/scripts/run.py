"""Running a script with its front ends sent to the simulator."""

import contextlib
import functools
import runpy
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from . import cuda_core, numba_cuda, triton_jit, unsupported_frameworks
from .driver import api as driver_api
from .driver import runtime_api
from .patches import Install, Patches
from .torch import cpu
from .virtual_device import RefusedError, StopScriptError, VirtualDevice


def _extensions(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Import what builds extensions only where a script does."""
    from ..extensions import load

    load.install(module, patches, machine)


SEAMS = {
    "cuda.bindings.driver": driver_api.install,
    "cuda.bindings.nvrtc": driver_api.install_nvrtc,
    "cuda.bindings.runtime": runtime_api.install,
    "cuda.core": cuda_core.install,
    "numba.cuda": numba_cuda.install,
    "torch": cpu.install,
    "torch.utils.cpp_extension": _extensions,
    "triton": triton_jit.install,
    "cupy": unsupported_frameworks.cupy,
    "cutlass.cute": unsupported_frameworks.cute_dsl,
    "tilelang.jit.kernel": unsupported_frameworks.tilelang,
    "warp._src.context": unsupported_frameworks.warp,
}
"""By the module after whose import it is made."""


@contextlib.contextmanager
def intercepted(machine: VirtualDevice) -> Iterator[None]:
    """Send the launches of every front end to a machine, until the end."""
    hooks: dict[str, Install] = {
        name: functools.partial(_install, seam, machine) for name, seam in SEAMS.items()
    }
    with Patches(hooks):
        yield


def _install(seam: Any, machine: VirtualDevice, module: ModuleType, patches: Patches) -> None:
    seam(module, patches, machine)


class ScriptEnd(NamedTuple):
    """How a script ended.

    Attributes:
        code: Its exit code; the signal's number after Ctrl-C.
        text: The traceback or message, if it did not end by itself.
        how: ``exit``, ``exception``, ``signal``, or ``refused``: it asked for what has no stand-in.
        place: File and line of its own code that raised the exception.
    """

    code: int
    text: str = ""
    how: str = "exit"
    place: str = ""


def run_script(path: Path, arguments: Sequence[str], machine: VirtualDevice) -> ScriptEnd:
    """Run a script as ``python SCRIPT ARGS`` does."""
    old_path, old_arguments = list(sys.path), sys.argv
    sys.path.insert(0, str(path.resolve().parent))
    sys.argv = [str(path), *arguments]
    try:
        with intercepted(machine):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return ScriptEnd(end.code or 0)
        return ScriptEnd(1, str(end.code))
    except StopScriptError:
        return ScriptEnd(0, machine.stopped)
    except KeyboardInterrupt as error:
        return ScriptEnd(signal.SIGINT, "interrupted", "signal", _place(error, path))
    except Exception as error:
        how = "refused" if isinstance(error, RefusedError) else "exception"
        return ScriptEnd(1, _trace(error, path), how, _place(error, path))
    finally:
        sys.path[:], sys.argv = old_path, old_arguments
        alive = [one for one in machine.device.allocations.values() if one.may_leak]
        machine.checks.leak([(one.place, one.nbytes) for one in alive])
        machine.order.hazards += machine.checks.hazards()
    return ScriptEnd(0)


def _trace(error: BaseException, path: Path) -> str:
    """Return the traceback from the script's own first line on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != str(path):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def _place(error: BaseException, path: Path) -> str:
    """Return the innermost line of the script itself that an exception went through."""
    lines = [n for frame, n in traceback.walk_tb(error.__traceback__)
             if frame.f_code.co_filename == str(path)]  # fmt: skip
    return f"{path.name}:{lines[-1]}" if lines else ""

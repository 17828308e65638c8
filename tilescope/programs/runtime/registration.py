"""Registration before ``main``: fat binaries, kernels, variables."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import dataclasses
import re
import struct
from pathlib import Path

from kernels import Kernel
from kernels.compiler.toolkit import is_toolkit
from kernels.errors import PtxError
from kernels.ptx.link import link
from kernels.source.mangling import demangle

from ..executable import FLAGS, ProgramRefusedError
from ..fatbin import FatBinaryEntry, entries, ptx_of
from .calls import stands_in_for
from .state import RegisteredModule, RegisteredSymbol, Runtime

_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]+)"', re.M)
_LARGEST_SOURCE = 1 << 22
_DEVICE_RUNTIME = "__cuda_syscall_cnpv2"
"""What the names of functions that libcudadevrt alone calls begin with."""
_LINKED, _MAX_UNITS = 2, 4096
"""Version of a wrapper with a table of units; so many are read."""


@stands_in_for("__cudaRegisterFatBinary")
def register_fat_binary(runtime: Runtime, wrapper: int, *_: int) -> int:
    _, version, data, units = struct.unpack("<IIQQ", runtime.process.read(wrapper, 24))
    handle = 0x1000 + 16 * len(runtime.modules)
    if version == _LINKED and units:
        runtime.modules[handle] = _linked(runtime, units)
        return handle
    found = list(entries(runtime.process.read, data))
    binaries = {str(one.arch): one.content for one in found if not one.is_ptx}
    runtime.modules[handle] = RegisteredModule(ptx_of(found), _kinds(found), binaries)
    return handle


def _kinds(found: list[FatBinaryEntry]) -> str:
    kinds = [f"{'PTX' if one.is_ptx else 'machine code'} for {one.arch}" for one in found]
    return ", ".join(kinds) or "nothing"


def _linked(runtime: Runtime, units: int) -> RegisteredModule:
    """Join the units of relocatable device code, whose fat binaries a table lists."""
    texts, kinds = [], []
    for i in range(_MAX_UNITS):
        (data,) = struct.unpack("<Q", runtime.process.read(units + 8 * i, 8))
        if not data:
            break
        found = list(entries(runtime.process.read, data))
        text = ptx_of(found)
        if text is not None and _DEVICE_RUNTIME not in text:
            texts.append(text)
        elif text is not None:
            continue  # launches from kernels have no stand-in
        else:
            kinds.append(_kinds(found))
    if not texts:
        return RegisteredModule(None, "; ".join(kinds) or "nothing")
    try:
        return RegisteredModule(link(texts), "")
    except PtxError as error:
        raise ProgramRefusedError(f"relocatable device code cannot be linked: {error}") from None


@stands_in_for("__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterHostVar")
def nothing_to_do(runtime: Runtime, *_: int) -> int:
    return 0


@stands_in_for("__cudaInitModule")
def init_module(runtime: Runtime, *_: int) -> int:
    return 1


@stands_in_for("__cudaRegisterFunction")
def register_function(
    runtime: Runtime, handle: int, host: int, device: int, name: int, *_: int
) -> int:
    runtime.functions[host] = runtime.modules[handle], runtime.process.text(name)
    return 0


@stands_in_for("__cudaRegisterVar")
def register_variable(
    runtime: Runtime, handle: int, host: int, device: int, name: int, external: int, nbytes: int
) -> int:
    text = runtime.process.text(name)
    runtime.symbols[host] = RegisteredSymbol(runtime.modules[handle], text, nbytes)
    return 0


@stands_in_for("__cudaRegisterManagedVar")
def register_managed(
    runtime: Runtime, handle: int, host: int, device: int, name: int, external: int, nbytes: int
) -> int:
    """Share the variable's bytes with the host, in a file that the host maps."""
    module, text = runtime.modules[handle], runtime.process.text(name)
    made = runtime.device.allocate(nbytes, "variable", text)
    if module.ptx is None or not runtime.connection.map(made.address, made.mapped_bytes, made.file):
        raise ProgramRefusedError(f"the __managed__ variable {text} cannot be mapped")
    runtime.device.share_variable(module.ptx, text, made)
    runtime.put(host, made.address)
    runtime.symbols[host] = RegisteredSymbol(module, text, nbytes)
    return 0


def kernel_of(runtime: Runtime, function: int) -> Kernel | None:
    """Return the kernel that a host function's address stands for; ``None``: it stands for none.

    Raises:
        ProgramRefusedError: The program has no PTX of it.
        PtxError: Its PTX cannot be read.
    """
    if function not in runtime.functions:
        return None
    module, entry = runtime.functions[function]
    if entry not in module.kernels:
        if module.ptx is None:
            raise ProgramRefusedError(
                f"{entry} has no PTX in the program, but {module.instead}; compile it with:\n"
                f"  nvcc {FLAGS}"
            )
        made = _kernel(module.ptx, entry, runtime.folders)
        module.kernels[entry] = dataclasses.replace(made, binaries=module.binaries)
    return module.kernels[entry]


def _kernel(ptx: str, entry: str, folders: list[Path]) -> Kernel:
    name = demangle(entry)
    sources = {}
    for file in dict.fromkeys(_FILE.findall(ptx)):
        path = Path(file)
        if not is_toolkit(file) and path.is_file() and path.stat().st_size < _LARGEST_SOURCE:
            sources[file] = path.read_text(errors="replace")
    made = Kernel.from_ptx(ptx, entry)
    return dataclasses.replace(
        made, name=name.name if name else entry, sources=sources, folders=tuple(folders)
    )

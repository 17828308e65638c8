"""LLVM: text to machine code in this process, remembered in the user's own folder.

What is remembered is machine code, so the folder has to be the user's and closed to all others
(0700); else nothing is remembered. A file's name is a digest of the IR, the versions of LLVM and of
this package's format, and the CPU with its features.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

LlvmObject: TypeAlias = Any
"""Anything of llvmlite's, which has no types."""
INSTALL = "pip install llvmlite"
_FORMAT = "1"
_MAX_FILES = 2000
_NEEDED = {"x86_64": ("fma", "sse4.1", "popcnt"), "aarch64": ()}
"""Features without which instructions that are exact here would be calls of a C library."""


@functools.cache
def why_unavailable() -> str:
    """Why this machine has no native engine; empty if it has one."""
    if sys.byteorder != "little":
        return "the native engine is for little-endian machines"
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return f"llvmlite is not installed: {INSTALL}"
    machine = llvm.get_process_triple().split("-")[0]
    machine = {"arm64": "aarch64"}.get(machine, machine)
    if machine not in _NEEDED:
        return f"the native engine has no {machine} code"
    features = llvm.get_host_cpu_features()
    missing = [name for name in _NEEDED[machine] if not features.get(name)]
    return f"this CPU has no {missing[0]}" if missing else ""


@dataclass(frozen=True)
class LoadedObject:
    """Machine code in memory; ``engine`` keeps it there.

    Attributes:
        cached: Whether it comes from the disk.
    """

    engine: LlvmObject
    cached: bool

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return int(self.engine.get_function_address(name))


@functools.cache
def _target() -> LlvmObject:
    import llvmlite.binding as llvm

    with suppress(RuntimeError):  # newer versions need no initialisation
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple())


def _machine(level: int) -> LlvmObject:
    import llvmlite.binding as llvm

    # Functions of other objects may be more than 2 GiB away: calls take 64-bit addresses.
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(),
        opt=level, reloc="static", codemodel="large", jit=True,
    )  # fmt: skip


def load(text: str, level: int) -> LoadedObject:
    """Compile a module of LLVM IR, or take its machine code from the disk.

    Args:
        text: The module. Functions that it declares have been given to ``export``.
        level: Optimisation, 0 to 3.
    """
    import llvmlite.binding as llvm

    key = _key(text, level)
    stored = _read(key)
    code = stored or _compiled(text, level)
    if stored is None:
        _write(key, code)
    empty = llvm.parse_assembly(f'target triple = "{llvm.get_process_triple()}"\n')
    engine = llvm.create_mcjit_compiler(empty, _machine(level))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return LoadedObject(engine, stored is not None)


def is_stored(text: str, level: int) -> bool:
    """Return whether a module's machine code is on the disk."""
    folder = cache_folder()
    return folder is not None and (folder / _key(text, level)).is_file()


def export(name: str, address: int) -> None:
    """Let later modules call a function by a name."""
    import llvmlite.binding as llvm

    llvm.add_symbol(name, address)


def function(address: int, arguments: int) -> Callable[..., int]:
    """Return a function of 64-bit integers that Python can call, without its lock."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)(address)


def _compiled(text: str, level: int) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine(level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    if level:
        tuning = llvm.create_pipeline_tuning_options(speed_level=level)
        tuning.loop_unrolling = False
        tuning.loop_vectorization = level > 1
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _key(text: str, level: int) -> str:
    import llvmlite
    import llvmlite.binding as llvm

    parts = (
        _FORMAT, llvmlite.__version__, str(llvm.llvm_version_info), llvm.get_process_triple(),
        llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), str(level), text,
    )  # fmt: skip
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def cache_folder() -> Path | None:
    """The folder of machine code, made if need be; ``None`` if it is not the user's alone."""
    root = os.environ.get("TILESCOPE_CACHE", "")
    if root == "off":
        return None
    folder = (Path(root) if root else Path.home() / ".cache" / "tilescope") / "native"
    if not hasattr(os, "getuid"):
        return None
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder if own and stat.S_IMODE(found.st_mode) == 0o700 else None


def _read(key: str) -> bytes | None:
    folder = cache_folder()
    if folder is None:
        return None
    try:
        stored = (folder / key).read_bytes()
    except OSError:
        return None
    digest, code = stored[:32], stored[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(key: str, code: bytes) -> None:
    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError):
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) // 2] if len(files) > _MAX_FILES else ():
            file.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file_:
            file_.write(hashlib.sha256(code).digest() + code)
        os.replace(name, folder / key)

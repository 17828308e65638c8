"""Machine code without a GPU: what NVIDIA's compilers make of a kernel for a real architecture.

NVRTC makes it of CUDA C++; of PTX nvJitLink does or ``ptxas``, from NVIDIA's wheels where they are
installed. Nothing is run: the ELF file says what a launch needs to know (CUDA Binary Utilities;
the attributes' numbers are those that ``cuobjdump --dump-elf`` names).
"""

import base64
import contextlib
import functools
import json
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from ..compiler.nvrtc import cache_file, cuda_machine_code, store
from ..compiler.process import ask
from ..errors import CompileError
from ..kernel import Kernel

_REGISTERS, _FRAME = 0x2F, 0x11
"""EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: a symbol's number and a value, 32 bits each."""
_WORD_FORM = 4
"""The form of an attribute that has a size and a payload."""
_TARGET = re.compile(r"^\.target sm_(\d+)\w*", re.M)
_ENTRY = re.compile(
    r"^\.(?:visible|weak) \.entry ([\w$]+)\(.*?^\}(?=\s*(?:\.[a-z]|// \.(?:globl|weak)|\Z))",
    re.M | re.S,
)
_RESERVED_FROM, _RESERVED = 90, 1024
"""From sm_90 on the compiler counts in what the system takes of a block's shared memory."""


@dataclass(frozen=True)
class MachineCode:
    """A kernel as compiled for one architecture.

    Attributes:
        arch: Such as ``sm_90``.
        registers: 32-bit registers of a thread, as a launch allots them.
        shared_bytes: Static shared memory of a block, without what the system reserves.
        stack_bytes: Local memory of a thread.
        words: The instructions, 128 bits each, as pairs of 64-bit words, low one first.
        lines: For each, the line from 1 of the PTX text that it comes from; 0 if none is known.
    """

    arch: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    words: tuple[tuple[int, int], ...]
    lines: tuple[int, ...]

    @property
    def known(self) -> bool:
        """Whether lines are known at all."""
        return any(self.lines)


def machine_code(kernel: Kernel, capability: str = "9.0") -> MachineCode | None:
    """Return a kernel's machine code for a compute capability; ``None`` without a compiler.

    Raises:
        KernelError: The compiler rejects the kernel.
    """
    options = kernel.origin.options if kernel.origin else ()  # not all of them change the PTX
    key = kernel.sha256, kernel.entry, capability, options
    if key not in _MADE:
        _MADE[key] = _make(kernel, capability.replace(".", ""))
    return _MADE[key]


def registers(kernel: Kernel, capability: str = "9.0") -> int | None:
    """Return the registers of a thread, from the cache on disk or ``machine_code``.

    A program's own machine code for the architecture comes first.
    """
    if (own := _registers_of_program(kernel, capability)) is not None:
        return own
    file = _cache_path(kernel, capability)
    if (stored := _stored(file)) is not None:
        return stored
    code = machine_code(kernel, capability)
    if code is not None and file is not None:
        store(file, {"registers": code.registers})
    return code.registers if code else None


def known_registers(kernel: Kernel, capability: str = "9.0") -> tuple[int | None, str]:
    """Return the registers of a thread if no compiler is needed to know them, and their origin.

    The origin is ``program`` (its own machine code), ``compiler`` (compiled here before), or
    ``not checked``.
    """
    if (own := _registers_of_program(kernel, capability)) is not None:
        return own, "program"
    options = kernel.origin.options if kernel.origin else ()
    code = _MADE.get((kernel.sha256, kernel.entry, capability, options))
    found = code.registers if code else _stored(_cache_path(kernel, capability))
    return found, "compiler" if found is not None else "not checked"


def _registers_of_program(kernel: Kernel, capability: str) -> int | None:
    binary = kernel.binaries.get(capability.replace(".", ""))
    if binary is None:
        return None
    from .elf import UNREADABLE, sections, symbol_numbers

    try:
        found = sections(binary)
        number = symbol_numbers(found).get(kernel.entry, -1)
        content = found[".nv.info"].data()
    except UNREADABLE:  # a program may be anything
        return None
    values = (value for kind, symbol, value in _attributes(content)
              if kind == _REGISTERS and symbol == number and 0 < value < 256)  # fmt: skip
    return next(values, None)


def _stored(file: Path | None) -> int | None:
    """Return the registers that a cache file has; ``None``: it is missing or torn."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(file.read_text())["registers"] if file else None
        if isinstance(stored, int) and 0 < stored < 256:
            return stored
    return None


def _cache_path(kernel: Kernel, capability: str) -> Path | None:
    """Return the cache path of machine code, if the PTX determines it completely."""
    made_for = _TARGET.search(kernel.ptx)
    if made_for is None or made_for[1] != capability.replace(".", ""):
        return None
    options = kernel.origin.options if kernel.origin else ()
    return cache_file("registers", kernel.sha256, kernel.entry, capability, *options)


_MADE: dict[tuple[str, str, str, tuple[str, ...]], MachineCode | None] = {}
"""What was compiled in this process."""


def _make(kernel: Kernel, number: str) -> MachineCode | None:
    origin, arch = kernel.origin, f"sm_{number}"
    if f".target sm_{number}a" in kernel.ptx:  # which has instructions of this very architecture
        arch += "a"
    if origin is None:
        binary = _from_ptx(kernel.ptx, arch)
        return None if binary is None else _read(binary, kernel.entry, arch)
    text, name, folder = origin.read()
    flags = origin.flags(kernel.build, arch)
    binary = cuda_machine_code(text, name, origin.entry, flags, folder)
    found = None if binary is None else _read(binary, kernel.entry, arch)
    made_for = _TARGET.search(kernel.ptx)
    if found is None or (made_for and made_for[1] == number):
        return found
    # For another architecture the source becomes another PTX, whose lines nobody knows here.
    binary = _from_ptx(_retargeted(kernel, number), arch)
    listing = None if binary is None else _read(binary, kernel.entry, arch)
    return listing or replace(found, lines=(0,) * len(found.lines))


def _retargeted(kernel: Kernel, number: str) -> str:
    """Return the kernel's PTX for another architecture, line for line, without other kernels."""
    return _TARGET.sub(f".target sm_{number}", without_other_kernels(kernel.ptx, kernel.entry))


def without_other_kernels(ptx: str, entry: str) -> str:
    """Return a PTX text in which lines of other kernels are empty."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[1] == entry else "\n" * match[0].count("\n")

    return _ENTRY.sub(blank, ptx)


def _from_ptx(ptx: str, arch: str) -> bytes | None:
    """Return the ELF of a PTX text, by whichever of NVIDIA's assemblers is installed."""
    program = _ptxas()
    if program is None:
        return _linked(ptx, arch)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        done = subprocess.run(
            [program, f"-arch={arch}", "--generate-line-info", "-o", str(made), str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return made.read_bytes()
    return None


def _linked(ptx: str, arch: str) -> bytes | None:
    try:
        made = ask("nvjitlink", ptx=ptx, options=[f"-arch={arch}", "-lineinfo"])
    except CompileError:  # it is not installed, or crashes on this text
        return None
    return made and base64.b64decode(made)


@functools.cache
def _ptxas() -> str | None:
    """``ptxas`` of the wheel, or on the path."""
    try:
        files = metadata.files("nvidia-cuda-nvcc") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("ptxas", "ptxas.exe"):
            return str(metadata.distribution("nvidia-cuda-nvcc").locate_file(file))
    found = shutil.which("ptxas")
    nvcc = shutil.which("nvcc")
    beside = Path(nvcc).resolve().with_name("ptxas") if nvcc else None
    return found or (str(beside) if beside and beside.is_file() else None)


def _read(binary: bytes, entry: str, arch: str) -> MachineCode | None:
    """Return the machine code of an entry in an ELF file; ``None`` if it is not there."""
    from .elf import line_rows, sections, symbol_numbers  # pyelftools takes 30 ms to import

    found = sections(binary)
    code = found.get(f".text.{entry}")
    if code is None:
        return None
    number = symbol_numbers(found).get(entry, -1)
    attributes = _attributes(found[".nv.info"].data()) if ".nv.info" in found else ()
    values = {kind: value for kind, symbol, value in attributes if symbol == number}
    if _REGISTERS not in values:
        return None
    shared = found.get(f".nv.shared.{entry}")
    size: int = shared["sh_size"] if shared else 0
    if size and int(arch.removeprefix("sm_").rstrip("a")) >= _RESERVED_FROM:
        size = max(0, size - _RESERVED)
    content = code.data()
    halves = struct.unpack(f"<{len(content) // 8}Q", content)
    words = tuple(zip(halves[::2], halves[1::2], strict=True))
    lines = [0] * len(words)
    starts = line_rows(found, number)
    for (at, line), (end, _) in zip(starts, [*starts[1:], (len(content), 0)], strict=False):
        for place in range(at // 16, min(end // 16, len(words))):
            lines[place] = line
    return MachineCode(
        arch, values[_REGISTERS], size, values.get(_FRAME, 0), words, tuple(lines)
    )  # fmt: skip


def _attributes(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield kind, symbol and value of the attributes in section ``.nv.info``."""
    at = 0
    while at + 4 <= len(content):
        form, kind, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if form == _WORD_FORM:
            if size == 8:
                yield kind, *struct.unpack_from("<II", content, at)
            at += size

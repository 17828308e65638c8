"""Traps that the compiler inserts for undefined behaviour, such as a write through ``const``."""

import re
from collections.abc import Mapping

from kernels import Kernel
from kernels.compiler.toolkit import short_path
from kernels.ptx.module import Function, Instruction, Special

_BEGIN, _END = "// begin inline asm", "// end inline asm"


def compiler_inserted_reason(kernel: Kernel, ins: Instruction) -> str | None:
    """Return why NVRTC inserted a trap; ``None``: it is the program's own.

    ``__trap()`` is inline assembly. A kernel that consists of a trap alone has no lines.
    """
    before = kernel.ptx[: ins.at]
    if kernel.origin is None or not ins.at or before.rfind(_BEGIN) > before.rfind(_END):
        return None
    if ins.location is not None:
        return ""
    name = re.findall(r"\w+", re.split(r"[<(]", kernel.origin.entry)[0])[-1]
    for file, text in kernel.sources.items():
        if found := re.search(rf"__global__[^;{{}}]*?\b{name}\s*\(", text):
            line = text.count("\n", 0, found.end()) + 1
            return f"nothing else is left of the kernel, {short_path(file)}:{line}"
    return ""


def reads_grid(functions: Mapping[str, Function]) -> bool:
    """Whether a kernel reads the driver's workspace of the grid barrier."""
    return any(
        isinstance(operand, Special) and operand.name.startswith("%envreg")
        for function in functions.values()
        for ins in function.body
        for operand in ins.operands
    )

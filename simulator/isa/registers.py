"""Which registers take values of which types (PTX ISA, "Operand Type Checking")."""

from __future__ import annotations

import functools


@functools.cache
def bits(kind: str) -> int:
    """The size of a type."""
    if kind in ("pred", "tf32", "i32"):
        return 1 if kind == "pred" else 32
    number, _, times = kind.lstrip("bfsu").partition("x")
    return int(number) * int(times or 1)


@functools.cache
def holds(register: str, kind: str, wider: bool) -> bool:
    """Whether a register of one type takes a value of another."""
    if "pred" in (register, kind):
        return register == kind
    if kind == "i32":
        return register in ("b32", "u32", "s32")
    have, need = bits(register), bits(kind)
    if have < need or (have > need and not wider):
        return False
    if kind in ("s16x2", "u16x2"):
        return register in ("b32", "f16x2")
    if kind.startswith("bf") or kind == "tf32":
        return register == f"b{need}"
    if kind.startswith("b"):
        return True
    if kind.startswith("f"):
        return register == kind or register.startswith("b")
    return register[0] in "bus" or (register == "f16x2" and need <= 32)

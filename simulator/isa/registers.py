"""Which registers take values of which types (PTX ISA, "Operand Type Checking")."""

import functools


@functools.cache
def bits(type: str) -> int:
    """The size of a type."""
    if type in ("pred", "tf32", "i32"):
        return 1 if type == "pred" else 32
    number, _, times = type.lstrip("bfsu").partition("x")
    return int(number) * int(times or 1)


@functools.cache
def holds(register: str, type: str, wider: bool) -> bool:
    """Whether a register of one type takes a value of another."""
    if "pred" in (register, type):
        return register == type
    if type == "i32":
        return register in ("b32", "u32", "s32")
    have, need = bits(register), bits(type)
    if have < need or (have > need and not wider):
        return False
    if type in ("s16x2", "u16x2"):
        return register in ("b32", "f16x2")
    if type.startswith("bf") or type == "tf32":
        return register == f"b{need}"
    if type.startswith("b"):
        return True
    if type.startswith("f"):
        return register == type or register.startswith("b")
    return register[0] in "bus" or (register == "f16x2" and need <= 32)

"""Register types and the value types that fit (PTX ISA, "Operand Type Checking")."""

import functools

from kernels.ptx.module import Address, Imm, Operand, Pair, Reg, Special, Symbol, Vector


@functools.cache
def bits(type: str) -> int:
    """Return the size of a type."""
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


def shown(operand: Operand | None) -> str:
    """Return an operand in a message."""
    if isinstance(operand, Reg | Special | Symbol):
        return repr(operand.name.split("#")[0])
    if isinstance(operand, Imm):
        return f"the constant {operand.value}" if operand.kind == "int" else "a floating constant"
    if isinstance(operand, Vector):
        return "values in braces"
    if isinstance(operand, Address):
        return "an address in brackets"
    return "two results" if isinstance(operand, Pair) else "'_'"

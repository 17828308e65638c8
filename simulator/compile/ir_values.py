"""Values of the IR: registers, constants, and typed reads and writes."""

from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Imm, Operand, Symbol


class Register(NamedTuple):
    """A program register, or a scalar parameter of a called function.

    Attributes:
        number: Index among the program's registers.
        carrier: PTX type of its storage: integers are signed, ``.f16`` is ``s16``.
    """

    number: int
    carrier: str


class Constant(NamedTuple):
    """Number known before the launch; ``operand``: its PTX operand."""

    value: np.generic
    operand: Imm | Symbol | None = None


class SpecialRegisterValue(NamedTuple):
    """Special register: constant during the launch, but different for each thread."""

    name: str
    carrier: str


class Parameter(NamedTuple):
    """Part of the kernel's parameters, a constant of the launch."""

    offset: int
    carrier: str


class Temporary(NamedTuple):
    """Value used only within one instruction's operations, created by passes."""

    number: int
    carrier: str


Value = Register | Constant | SpecialRegisterValue | Parameter | Temporary


class SourceValue(NamedTuple):
    """A value read as a PTX type.

    The type is as wide as the carrier and reinterprets the bits, or is narrower and uses the low
    bits. An address may be wider and is sign-extended.

    Attributes:
        negated: Whether a predicate is inverted.
    """

    value: Value
    type: str
    negated: bool = False


class ResultValue(NamedTuple):
    """Destination of a result of a PTX type.

    A type narrower than the carrier is extended: signed types by sign, others by zeros.

    Attributes:
        under: Mask of the lanes that receive the result; ``None``: all.
    """

    register: Register | Temporary
    type: str
    under: SourceValue | None = None


def operand_text(operand: Operand | None) -> str:
    """Return an operand other than a register as text."""
    if isinstance(operand, Imm):
        if operand.kind == "int":
            return str(operand.value)
        size = 4 if operand.kind == "f32" else 8
        bits = np.dtype(f"u{size}").type(operand.value)
        return str(bits.view(f"f{size}").item())
    return getattr(operand, "name", "")

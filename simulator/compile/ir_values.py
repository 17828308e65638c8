"""Values of the IR: registers, constants, and how steps read and write them."""

from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Imm, Symbol


class Register(NamedTuple):
    """A register of the program, or a scalar parameter of a function that is called.

    Attributes:
        number: Its place among the program's registers.
        carrier: The PTX type whose dtype holds it: integers are signed, ``.f16`` is ``s16``.
    """

    number: int
    carrier: str


class Constant(NamedTuple):
    """A number that is known before the launch; ``operand``: what stands for it in the PTX."""

    value: np.generic
    operand: Imm | Symbol | None = None


class SpecialRegisterValue(NamedTuple):
    """A special register: the same for the whole launch, but not for each thread."""

    name: str
    carrier: str


class Parameter(NamedTuple):
    """A piece of the kernel's parameters: a constant of the launch."""

    offset: int
    carrier: str


class Temporary(NamedTuple):
    """A value that only steps of the same instruction use; passes make them."""

    number: int
    carrier: str


Value = Register | Constant | SpecialRegisterValue | Parameter | Temporary


class SourceValue(NamedTuple):
    """A value read as one of a PTX type.

    The type is as wide as the carrier, and the bits are the same; or narrower, and these are
    the low bits; or, of an address, wider, and the sign goes on.

    Attributes:
        negated: It is the opposite of a predicate.
    """

    value: Value
    type: str
    negated: bool = False


class ResultValue(NamedTuple):
    """Where a result of a PTX type goes.

    A narrower type than the carrier is extended: signed ones by sign, all others by zeros.

    Attributes:
        under: The lanes that get the result, the others keep what they had; ``None``: all.
    """

    register: Register | Temporary
    type: str
    under: SourceValue | None = None

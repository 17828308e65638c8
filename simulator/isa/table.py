"""The instruction table: a row says all there is to know of an opcode on a class of types.

Where a row's meaning is a function of values it has a builder, which gets the parsed
instruction and returns an ``Op``: the NumPy function with the types it takes and gives. The
other rows say what they do to control flow, memory and barriers in words that the compiler
knows; how that is done stands in ``execute`` and ``memory``.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ..core.geometry import Lanes

Function = Callable[..., Lanes]
"""Of registers' values."""
Results = Lanes | tuple[Lanes, ...]


@dataclass(frozen=True)
class Op:
    """Meaning of one instruction: a function of its operands' values.

    Attributes:
        fn: Takes arrays (or NumPy scalars) of the ``inputs`` types that broadcast to
            each other, gives one array of the ``outputs`` type (a tuple if several).
            It never raises and is defined for every bit pattern.
        inputs: PTX type of each source operand.
        outputs: PTX type of each destination operand.
        count: Name of the counter it adds one to per thread (``fma_f32`` ...), if any.
        flops: Floating-point operations a thread.
        warp: ``fn`` looks across lanes: it gets the warp view as its first argument.
        approximate: PTX promises an error bound only, not the bits (``mufu``).
        positions: The result is a number of bits, or the place of one.
    """

    fn: Callable[..., Results]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    count: str | None = None
    flops: int = 0
    warp: bool = False
    approximate: bool = False
    positions: bool = False

    @property
    def selects(self) -> bool:
        """Whether it gives one of two values, as a predicate says."""
        return self.inputs == (*self.outputs * 2, "pred")


class Unsupported(Exception):
    """Raised for a variant of an opcode that there is not: what it is, and what to use instead."""


Builder = Callable[[Instruction], Op]


class Flow(enum.Enum):
    """Control flow of an instruction."""

    NEXT = "to the next one"
    BRANCH = "to a label"
    SWITCH = "to one of some labels"
    CALL = "into a function"
    SYSTEM = "on; a function of the system has been played"
    ASSERT = "nowhere: a function of the system ends the launch"
    RETURN = "back to the call, or out of the kernel"
    EXIT = "out of the kernel"
    TRAP = "nowhere: the launch ends"
    BARRIER = "on, when the barrier lets them"

    @property
    def jumps(self) -> bool:
        """Whether to a label."""
        return self in (Flow.BRANCH, Flow.SWITCH)

    @property
    def comes_back(self) -> bool:
        """Whether lanes go on behind it, sooner or later."""
        return self in (Flow.NEXT, Flow.CALL, Flow.SYSTEM, Flow.ASSERT, Flow.BARRIER)

    @property
    def leaves(self) -> bool:
        """Whether out of the function."""
        return self in (Flow.RETURN, Flow.EXIT)


Memory = Literal["", "load", "store", "atomic", "copy"]
Asynchronous = Literal["", "copy", "bulk", "store", "commit", "wait", "arrive"]
Phase = Literal["", "init", "end", "arrive", "drop", "expect", "complete", "wait"]
Waits = Literal["nobody", "block", "lanes", "cluster"]
OfAddress = Literal["", "same", "either", "sum", "difference", "addend"]
Picture = Literal["", "fetch", "gather", "size", "surface", "surface size"]


@dataclass(frozen=True)
class InstructionSpec:
    """One opcode on one class of types: all that there is to know of it.

    Attributes:
        opcode: Its name without modifiers.
        section: Where the PTX ISA defines it.
        signatures: Its forms: modifiers, types and operands with their roles, in the notation of
            ``grammar``; none for an instruction that the simulator does not execute.
        unsupported_signatures: Forms of PTX that the simulator does not execute, with what they are
            about and what to use instead.
        build: Its meaning, where that is a function of values.
        flow: Where lanes go after it.
        waits: For whom a lane waits there: ``nobody``, the ``block``, the ``cluster``, or the
            ``lanes`` of the warp that its member mask names (of ``wgmma``: of the warpgroup).
        memory: What it does to memory at its address operand.
        rows: Whether what the lanes load are rows of matrices (``matrix``), for all to share: its
            meaning takes the rows' words.
        fence: Whether it puts the thread's accesses in order, at the scope it names.
        aligned: Whether all threads of a warp have to come to it together, as ``.aligned`` says.
        asynchronous: Its part in copies that go on beside the thread: it starts a ``copy``, one in
            ``bulk``, or a ``store`` (whose bytes arrive at an ``mbarrier``), puts those before it
            into a group (``commit``), holds the thread until groups are there (``wait``), or
            arrives at an ``mbarrier`` when those before it are (``arrive``).
        phase: What it does to the phase of an ``mbarrier``.
        copies: Whether its result is its source.
        of_address: What it makes of an address that it is given: the ``same``, ``either`` of two, a
            ``sum``, a ``difference``, or a sum with its last, the ``addend``; else a number.
        generic: Whether it makes a generic address of one in the space it names.
        queue: What it starts, ends a group of or waits for, if it is asynchronous.
        scattered: Whether lanes access pieces of a matrix by a stride (``wmma``): its meaning
            makes registers of them, or them of registers.
        warpgroup: Whether descriptors say where in shared memory it reads (``wgmma``).
        picture: What it does to a texture or a surface, whose handle stands in the brackets.
        arch_dependent: Whether its meaning takes an architecture's number first: see
            ``architectures``.
        is_match: Whether it tells lanes which others have the same value (``match``).
        shuffles: Whether each lane gets the value of another one (``shfl``).
    """

    opcode: str
    section: str
    signatures: tuple[str, ...] = ()
    unsupported_signatures: tuple[tuple[str, str], ...] = ()
    build: Builder | None = None
    flow: Flow = Flow.NEXT
    waits: Waits = "nobody"
    memory: Memory = ""
    rows: bool = False
    fence: bool = False
    asynchronous: Asynchronous = ""
    phase: Phase = ""
    aligned: bool = False
    copies: bool = False
    of_address: OfAddress = ""
    generic: bool = False
    arch_dependent: bool = False
    warpgroup: bool = False
    queue: str = "copy"
    scattered: bool = False
    picture: Picture = ""
    is_match: bool = False
    shuffles: bool = False

    @property
    def gate(self) -> bool:
        """Whether lanes of a warp are held in front of it."""
        return self.waits == "lanes"

    @property
    def warp_barrier(self) -> bool:
        """Whether lanes wait for each other and do nothing else there."""
        return self.waits == "lanes" and self.build is None and not self.asynchronous


TABLE: dict[str, tuple[InstructionSpec, ...]] = {}
"""The rows of every opcode of PTX that the simulator knows, in the order of trial."""


class Effects(TypedDict, total=False):
    """Optional fields of a row besides forms and meaning (see ``InstructionSpec``)."""

    flow: Flow
    waits: Waits
    memory: Memory
    rows: bool
    fence: bool
    asynchronous: Asynchronous
    phase: Phase
    aligned: bool
    copies: bool
    of_address: OfAddress
    generic: bool
    arch_dependent: bool
    warpgroup: bool
    queue: str
    scattered: bool
    picture: Picture
    is_match: bool
    shuffles: bool


def lines(text: str) -> tuple[str, ...]:
    """Forms, one a line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def register_effect_only(
    *opcodes: str,
    section: str,
    forms: str = "",
    later: str = "",
    build: Builder | None = None,
    **effects: Unpack[Effects],
) -> None:
    """Register a row for each opcode; ``forms`` and ``later`` are lines (``grammar``)."""
    not_yet = [line.partition(" : ") for line in lines(later)]
    missing = tuple((form.strip(), about.strip()) for form, _, about in not_yet)
    for opcode in opcodes:
        made = InstructionSpec(opcode, section, lines(forms), missing, build, **effects)
        TABLE[opcode] = (*TABLE.get(opcode, ()), made)


def row(
    *opcodes: str, section: str, forms: str, later: str = "", **effects: Unpack[Effects]
) -> Callable[[Builder], Builder]:
    """Register a builder under its opcodes."""

    def register(build: Builder) -> Builder:
        register_effect_only(
            *opcodes, section=section, forms=forms, later=later, build=build, **effects
        )
        return build

    return register


def scalar_type(ins: Instruction, index: int = -1) -> str:
    """Return the instruction's type suffix (the last one unless said otherwise)."""
    types = ins.types
    if not types:
        raise Unsupported("no type: use one that the PTX ISA has")
    return types[index]


SPACES = ("global", "shared", "local", "const", "param")
_SCOPES = {word: word for word in ("mbarrier_init", "cta", "cluster", "gpu", "sys")} | {"gl": "gpu"}


def named_space(ins: Instruction, address: int = 0) -> str:
    """Return the state space that an instruction names for one of its addresses, if any."""
    words = (m.split("::")[0] for m in ins.modifiers)
    named = [word for word in words if word in SPACES]
    if address == len(named) and any(m.startswith("mbarrier::") for m in ins.modifiers):
        return "shared"
    return named[address] if address < len(named) else ""


def reaches_far(ins: Instruction, address: int = 0) -> bool:
    """Whether one of its addresses may lie in another block's shared memory, as it is written."""
    named = [m for m in ins.modifiers if m.split("::")[0] in SPACES]
    if address == len(named) and any(m.startswith("mbarrier::") for m in ins.modifiers):
        address = 0  # that of what is written
    return address >= len(named) or named[address] == "shared::cluster"


def scope(ins: Instruction) -> str:
    """Return the scope of a fence or access, ``cta``, ``gpu`` ..., or ``mbarrier_init``."""
    return next((_SCOPES[m] for m in ins.modifiers if m in _SCOPES), "")


INITS, BLOCK, CLUSTER, DEVICE = range(-1, 3)
"""How far a scope reaches; ``INITS``: in the cluster, but for what initialises mbarriers alone."""


def reach(ins: Instruction) -> int:
    """Return the scope number of a fence or access; ``DEVICE`` without a scope."""
    return {"mbarrier_init": INITS, "cta": BLOCK, "cluster": CLUSTER}.get(scope(ins), DEVICE)


def width(type: str) -> int:
    """Return bits of a PTX type."""
    return int(DTYPES[type].itemsize) * 8


def same(value: Lanes) -> Lanes:
    """Return the meaning of a copy."""
    return value


def bits_or_float(type: str) -> str:
    """Return the type as which a value is only passed on."""
    return type if type in ("f32", "f64", "pred") else f"b{width(type)}"


def signed(type: str) -> str:
    """Return the signed type of the same width: where sign does not matter, views are saved."""
    return f"s{width(type)}"


def unsigned(type: str) -> str:
    """Return the unsigned type of the same width."""
    return f"u{width(type)}"

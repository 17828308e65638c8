"""Data structures of a parsed PTX module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from kernels.compiler.toolkit import is_toolkit

from .header import Param
from .types import TYPE_SIZES

Line = tuple[str, int] | int
"""A source line: its file and number; without line information, that of the PTX."""
TYPES = frozenset(TYPE_SIZES) | {"pred"}
"""Every type suffix that an opcode or a declaration may carry."""


@dataclass(frozen=True)
class Location:
    """A CUDA source position, and the calls that led to it (innermost first)."""

    file: str
    line: int
    column: int = 0
    inlined_at: Location | None = None

    @property
    def outermost(self) -> Location:
        """The position in the kernel itself."""
        return self.chain[-1]

    @functools.cached_property
    def chain(self) -> tuple[Location, ...]:
        """This position and the calls that led to it, up to the kernel's."""
        found = [self]
        while found[-1].inlined_at:
            found.append(found[-1].inlined_at)
        return tuple(found)

    @functools.cached_property
    def user(self) -> Location:
        """The innermost position that is not in a toolkit's header; the kernel's if all are."""
        return next((at for at in self.chain if not is_toolkit(at.file)), self.outermost)

    @property
    def depth(self) -> int:
        """Number of calls through which it was inlined."""
        return self.inlined_at.depth + 1 if self.inlined_at else 0


@dataclass(frozen=True)
class Reg:
    """A register; ``negated`` is ``!%p``; ``part``: ``b0`` of ``%r.b0``, ``-b0`` of ``-%r.b0``."""

    name: str
    negated: bool = False
    part: str = ""


@dataclass(frozen=True)
class Special:
    """A read-only special register such as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Imm:
    """A constant: ``kind`` is ``int``, or ``f32``/``f64`` with ``value`` its bits."""

    kind: str
    value: int


@dataclass(frozen=True)
class Symbol:
    """A variable's address plus a constant."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """``{a, b, ...}``; ``None`` stands for the sink ``_``."""

    items: tuple[Operand | None, ...]


@dataclass(frozen=True)
class Address:
    """``[base + offset]``; ``at``: the coordinates of ``[base, {x, y}]``."""

    base: Reg | Symbol | Imm
    offset: int = 0
    at: tuple[Operand | None, ...] = ()


@dataclass(frozen=True)
class Pair:
    """``d|p``: a second destination."""

    first: Operand | None
    second: Operand | None


Operand = Reg | Special | Imm | Symbol | Vector | Address | Pair


@dataclass(eq=False)
class Instruction:
    """One instruction.

    Attributes:
        opcode: The first word, such as ``fma``.
        modifiers: What follows, without dots: ``("rn", "f32")``.
        operands: In PTX order, destination first.
        guard: The ``@%p`` or ``@!%p`` in front, if any.
        line: Line in the PTX text, from 1; ``at``: where in the text it begins, guard and all.
        location: The CUDA source position, if the PTX has ``.loc`` lines.
        targets: ``bra``: label; ``brx``: labels; ``call``: the function.
        results: ``call``: names of the return parameters.
        decoded: What the simulator's instruction table says of it, once it was looked up.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand | None, ...]
    guard: Reg | None
    line: int
    location: Location | None
    targets: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    decoded: object = None
    at: int = 0

    @property
    def name(self) -> str:
        """The full opcode as PTX writes it."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def user_line(self) -> Line:
        """The user's source line, which it shares with copies that unrolling makes.

        Without line information: the PTX line.
        """
        where = self.location.user if self.location else None
        return (where.file, where.line) if where else self.line

    @property
    def types(self) -> tuple[str, ...]:
        """The type suffixes, in order."""
        return tuple(m for m in self.modifiers if m in TYPES)

    def has(self, *modifiers: str) -> bool:
        """Whether any of the modifiers is there."""
        return any(m in self.modifiers for m in modifiers)


@dataclass
class Variable:
    """A declared ``.shared``, ``.global``, ``.const``, ``.local`` or ``.param`` variable.

    Attributes:
        dims: Extents; ``()`` for a scalar, a leading 0 for ``extern ... []``.
        init: Initial values, flat; ``(symbol, offset)`` pairs for addresses.
    """

    name: str
    space: str
    type: str
    dims: tuple[int, ...] = ()
    align: int = 1
    init: tuple[int | Symbol, ...] = ()
    external: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        size = TYPE_SIZES[self.type]
        for extent in self.dims:
            size *= extent
        return size


@dataclass
class Function:
    """An ``.entry`` or ``.func``.

    Attributes:
        prototypes: Results and parameters of what is called through pointers, by label.
        copy_of: Of a copy for one of several calls: the function's own name.
        explicit_cluster: Whether a launch has to have clusters; ``in_clusters``: counts them.
        located: Whether its instructions' locations say where it is called.
    """

    name: str
    is_entry: bool
    params: tuple[Param, ...]
    results: tuple[Param, ...]
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    prototypes: dict[str, tuple[tuple[Param, ...], tuple[Param, ...]]] = field(default_factory=dict)
    max_threads: tuple[int, ...] = ()
    required_threads: tuple[int, ...] = ()
    required_cluster: tuple[int, ...] = ()
    max_cluster: int = 0
    explicit_cluster: bool = False
    in_clusters: bool = False
    location: Location | None = None
    read_body: Callable[[], None] | None = None
    copy_of: str = ""
    located: bool = False

    def load(self) -> None:
        """Read the body, if that is still to be done.

        Raises:
            PtxError: It cannot be read; names the PTX line.
        """
        if self.read_body:
            read, self.read_body = self.read_body, None
            read()


@dataclass
class Module:
    """A parsed PTX text; ``digest`` tells it from others.

    ``unoptimised``: its target is for debugging: variables live in memory, not in registers.
    """

    digest: str = ""
    version: str = ""
    target: str = ""
    unoptimised: bool = False
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)

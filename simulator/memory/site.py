"""Sites: memory accesses in the program's text."""

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Address, Function, Imm, Instruction

from ..core.geometry import WARP, Addresses, Lanes
from ..isa import DTYPES, Unsupported
from ..isa.decoded import roles
from ..isa.matrix import matrix
from ..isa.table import CLUSTER, DEVICE, named_space, reach, reaches_far, scalar_type

_STRONG = frozenset({"relaxed", "acquire", "release", "acq_rel", "mmio", "volatile"})
PHASE = "phase"
"""The operation of an arrival at an ``mbarrier``."""
FREES = "free"
"""The operation of a call of ``free``: as a store to all that is freed."""
ATOMICS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")


class Granules(NamedTuple):
    """Bytes of a location in each memory: 4, or the narrowest access there."""

    array: int
    shared: int
    local: int


@dataclass(eq=False)
class Site:
    """One load, store or atomic instruction.

    Attributes:
        number: Index among the program's accesses.
        access: ``load``, ``store`` or ``atomic``.
        space: State space; ``generic`` if only the address determines it; ``texture`` or
            ``surface`` if a handle replaces the address.
        type: PTX type of one element.
        count: Elements of a thread: 1, 2, 4 or 8.
        operation: ``add`` ... ``cas`` of an atomic.
        returns: Whether an instruction reads the atomic's old value.
        has_trace: Whether a trace records the atomic's old value although no instruction reads it.
        block: Number of its basic block.
        counted: Whether it is memory traffic; passing a structure to a function is not.
        offset: Constant part of the address in bytes.
        variable: Name of the variable, if the instruction names one.
        operand: The address operand in brackets.
        asynchronous: Whether it takes place before a later wait for its ``queue``.
        order: Memory-model order, if it differs from the instruction's modifiers.
        traffic: Whether it passes the load/store unit; operand reads of a warpgroup do not.
        bulk: The source of a bulk copy, if this is its destination.
        far: Whether it may access shared memory of other blocks of the cluster.
        lanes: Number of a warp's lanes that supply addresses, such as eight for each matrix of
            ``ldmatrix``.
        object_bounds: First byte and end of the shared variables from which its address is
            derived, if known; elsewhere in shared memory it is out of bounds.
        parent_site: Number of the access of which this is one part.
    """

    number: int
    instruction: Instruction
    function: str
    access: str
    space: str
    type: str
    count: int
    block: int
    operation: str = ""
    returns: bool = False
    counted: bool = True
    offset: int = 0
    variable: str = ""
    lanes: int = WARP
    order: frozenset[str] = frozenset()
    operand: Address | None = None
    asynchronous: bool = False
    queue: str = "copy"
    traffic: bool = True
    bulk: "Site | None" = None
    far: bool = False
    object_bounds: tuple[int, int] | None = None
    parent_site: int | None = None
    has_trace: bool = False

    @property
    def whole(self) -> int:
        """Number of the access of which this is a part, or its own."""
        return self.number if self.parent_site is None else self.parent_site

    @property
    def is_image(self) -> bool:
        """Whether it accesses a texture or a surface."""
        return self.space in ("texture", "surface")

    @property
    def bound(self) -> bool:
        """Whether a ``memory`` object performs it, as for bulk copies and texture fetches."""
        return self.bulk is not None or self.is_image

    @property
    def in_bulk(self) -> bool:
        """Whether it is source or destination of a bulk copy."""
        queued = not self.traffic and self.queue in ("transaction", "bulk")
        return queued and self.operation != PHASE

    @property
    def volatile(self) -> bool:
        """Whether it is ``ld.volatile`` or ``st.volatile``: strong in PTX, not in CUDA C++."""
        return self.access != "atomic" and "volatile" in self.instruction.modifiers

    @property
    def _words(self) -> Collection[str]:
        return self.order or self.instruction.modifiers

    @functools.cached_property
    def strong(self) -> bool:
        """Whether it is a strong operation (PTX ISA, "Memory Consistency Model")."""
        return self.access == "atomic" or not _STRONG.isdisjoint(self._words)

    @functools.cached_property
    def scope(self) -> int:
        """Number of its scope: ``table.BLOCK``, ``CLUSTER`` or ``DEVICE``."""
        phase = bool(self.order) and not self.bound
        return CLUSTER if phase else reach(self.instruction)

    @property
    def has_narrow_scope(self) -> bool:
        """Whether its scope is narrower than the device."""
        return self.scope < DEVICE

    @functools.cached_property
    def non_atomic_remotely(self) -> bool:
        """Whether ptxas splits it into load and store for other blocks' shared memory.

        See docs/measured.md, "Clusters".
        """
        steps = self.operation in ("min", "max", "and", "or", "xor")
        return self.access == "atomic" and steps and self.size == 8

    @functools.cached_property
    def adds_bits(self) -> bool:
        """Whether ptxas replaces a packed float addition there by an integer addition."""
        return self.operation == "add" and self.type in ("f16x2", "bf16x2")

    @functools.cached_property
    def acquires(self) -> bool:
        """Whether it is an acquire without a fence."""
        return not {"acquire", "acq_rel"}.isdisjoint(self._words)

    @functools.cached_property
    def releases(self) -> bool:
        """Whether it is a release without a fence."""
        return not {"release", "acq_rel"}.isdisjoint(self._words)

    @property
    def line(self) -> tuple[str, int] | int:
        """See ``Instruction.user_line``."""
        return self.instruction.user_line

    @functools.cached_property
    def size(self) -> int:
        """Bytes of one element."""
        return int(DTYPES[self.type].itemsize)

    @functools.cached_property
    def nbytes(self) -> int:
        """Bytes that a thread accesses."""
        return self.size * self.count


def _param_space(ins: Instruction, function: Function) -> str:
    """Return the space of a ``.param`` access: the kernel's buffer, or local memory for calls."""
    named = roles(ins).parameter
    if function.is_entry and (not named or named in {p.name for p in function.params}):
        return "global"
    return "local"


def interleaved(address: Addresses, thread: Lanes) -> Addresses:
    """Return the place in local memory, where a word of a warp's 32 threads is contiguous.

    (CUDA C++ Programming Guide, "Local Memory".) A wider element's words are 128 bytes apart.
    """
    inside = address & np.int64(3)
    place: Addresses = (address - inside) * WARP + thread.astype(np.int64) * 4 + inside
    return place


def make_site(ins: Instruction, number: int, access: str, function: Function, block: int) -> Site:
    """Return the site of a memory instruction.

    Raises:
        Unsupported: The memories do not support the form.
    """
    words = [m.split("::")[0] for m in ins.modifiers]
    space = named_space(ins) or "generic"
    counted = True
    if space == "param":
        space, counted = _param_space(ins, function), False
    role = roles(ins)
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    if role.row.rows:
        return Site(
            number, ins, function.name, access, space, "b32", matrix.ROW_WORDS, block,
            lanes=8 * matrix.matrices(ins),
        )  # fmt: skip
    if role.row.phase or role.row.asynchronous == "arrive":
        order = {"load": "acquire", "atomic": "release"}.get(access, "")
        named = "relaxed" if "relaxed" in words else order
        return Site(
            number, ins, function.name, access, space, "b64", 1,
            block, PHASE if access == "atomic" else "", bool(role.form.results),
            order=frozenset({named} - {""}), traffic=False, far=ins.has("shared::cluster"),
        )  # fmt: skip
    if role.row.asynchronous == "copy":
        assert isinstance(role.sources[0], Imm)
        space = "shared" if access == "store" else "global"
        return Site(
            number, ins, function.name, access, space, "b32", role.sources[0].value // 4, block,
            asynchronous=access == "store",
        )  # fmt: skip
    if role.row.scattered:
        return Site(number, ins, function.name, access, space, "b32", 1, block)
    type = scalar_type(ins)
    if type == "b128":
        type, count = "b64", 2
    operation = ""
    if access == "atomic":
        operation = next((w for w in words if w in ATOMICS), "")
        if not operation:
            raise Unsupported("this atomic operation: use atom.cas in a loop")
    return Site(
        number, ins, function.name, access, space, type, count, block,
        operation, bool(role.form.results), counted, far=reaches_far(ins),
    )  # fmt: skip


def text_site(call: Instruction, function: str, space: str, block: int) -> Site:
    """Return a site for the reads of a printed string, which no instruction makes."""
    return Site(-1, call, function, "load", space, "b8", 1, block)


def granules(sites: Collection[Site], same_size: bool) -> Granules:
    """Return a program's granules; ``same_size``: strings are printed from any memory."""

    def least(own: Collection[str]) -> int:
        elsewhere = set[str]() if same_size else set[str]().union(*_SPACES) - set(own)
        return min([4, *(site.size for site in sites if site.space not in elsewhere)])

    return Granules(*map(least, _SPACES))


_SPACES = ({"global"}, {"shared", "cluster"}, {"local"})
"""That name the memories of ``Granules``; other accesses may be to any of them."""

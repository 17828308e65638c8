"""Loads, stores, atomics and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernels.ptx.module import Address, Instruction, Symbol, Vector
from tests.oracles.interpreter.memory import ARRAY, LOCAL, RANK, SHARED, Fault
from tests.oracles.interpreter.values import WIDTH, NotModelled, mask, number, with_nan
from tests.simulator.isa.floats import FORMATS

if TYPE_CHECKING:
    from tests.oracles.interpreter.decode import Code, Step
    from tests.oracles.interpreter.machine import Frame, Thread

SPACES = ("global", "shared", "local", "const", "param")
WINDOWS = {"global": 0, "const": 0, "param": 0, "shared": SHARED, "local": LOCAL}


def space_of(ins: Instruction) -> str:
    words = [m.split("::")[0] for m in ins.modifiers]
    return next((w for w in words if w in SPACES), "generic")


def find(t: Thread, space: str, address: int, width: int) -> tuple[bytearray, int]:
    """The bytes that an address means, and where in them it is."""
    if address % width:
        raise Fault(f"{address:#x} is not aligned to {width}")
    if space == "generic":
        if address >= LOCAL:
            space, address = "local", address - LOCAL
        elif address >= SHARED:
            space, address = "shared", address - SHARED
    if space == "shared":
        whose, address = (0, address) if address < 0 else divmod(address, 1 << RANK)
        home = t.block.cluster.blocks[whose - 1].shared if whose else t.shared
    elif space == "local":
        home = t.local
    else:
        home, address = t.memory.arrays.get(address >> ARRAY), address & mask(ARRAY)
        if home is None:
            raise Fault("an address that is not")
    if address < 0 or address + width > len(home):
        raise Fault(f"{address} in {space} memory of {len(home)} bytes")
    return home, address


def step(code: Code, ins: Instruction) -> Step:
    """One of these instructions as a closure."""
    if ins.opcode in ("cvta", "isspacep"):
        return conversion(code, ins)
    kind = ins.types[-1]
    size = WIDTH[kind] // 8
    words = [m.split("::")[0] for m in ins.modifiers]
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    space = space_of(ins)
    place = 0 if ins.opcode in ("st", "red") else 1
    address = ins.operands[place]
    assert isinstance(address, Address)
    if space == "param":
        base = address.base
        if isinstance(base, Symbol):
            return parameter(code, ins, base.name, address.offset, kind, count)
        space = "generic"
    where = code.base(address)
    if ins.opcode in ("atom", "red"):
        return atomic(code, ins, where, space, kind, size, place)
    value = ins.operands[1 - place]
    items = list(value.items) if isinstance(value, Vector) else [value]
    if len(items) != count:
        raise NotModelled(ins.name)
    width = size * count
    if place:
        writes = [code.write(o, kind) for o in items]

        def load(t: Thread, f: Frame) -> None:
            home, at = find(t, space, where(t, f), width)
            for i, put in enumerate(writes):
                put(t, f, int.from_bytes(home[at + i * size : at + (i + 1) * size], "little"))

        return load
    reads = [code.read(o, kind) for o in items]

    def store(t: Thread, f: Frame) -> None:
        home, at = find(t, space, where(t, f), width)
        home[at : at + width] = b"".join(r(t, f).to_bytes(size, "little") for r in reads)

    return store


def parameter(
    code: Code, ins: Instruction, name: str, offset: int, kind: str, count: int
) -> Step:  # fmt: skip
    """``ld.param`` and ``st.param`` by name."""
    size = WIDTH[kind] // 8
    loads = ins.opcode == "ld"
    value = ins.operands[0 if loads else 1]
    items = list(value.items) if isinstance(value, Vector) else [value]
    declared = code.function.variables.get(name)
    total = declared.nbytes if declared else 0
    if loads:
        writes = [code.write(o, kind) for o in items]

        def load(t: Thread, f: Frame) -> None:
            raw = f.params[name]
            for i, put in enumerate(writes):
                at = offset + i * size
                put(t, f, int.from_bytes(raw[at : at + size], "little"))

        return load
    reads = [code.read(o, kind) for o in items]

    def store(t: Thread, f: Frame) -> None:
        raw = f.params.get(name)
        if raw is None:
            raw = f.params[name] = bytearray(total)
        for i, read in enumerate(reads):
            at = offset + i * size
            raw[at : at + size] = read(t, f).to_bytes(size, "little")

    return store


def conversion(code: Code, ins: Instruction) -> Step:
    """``cvta`` and ``isspacep``."""
    start = WINDOWS[space_of(ins)]
    space = space_of(ins)
    if ins.opcode == "isspacep":
        read, put = code.read(ins.operands[1], "b64"), code.write(ins.operands[0], "pred")

        def is_space(t: Thread, f: Frame) -> None:
            x = read(t, f)
            window = "local" if x >= LOCAL else "shared" if x >= SHARED else "global"
            put(t, f, int(window == (space if space in ("shared", "local") else "global")))

        return is_space
    kind = ins.types[-1]
    read, put = code.read(ins.operands[1], kind), code.write(ins.operands[0], kind)
    by = -start if ins.has("to") else start
    bits = mask(64)
    return lambda t, f: put(t, f, read(t, f) + by & bits)


def combine(ins: Instruction, kind: str, space: str) -> Any:
    """What an atomic makes of the old value and its operands."""
    bits = mask(WIDTH[kind])
    name = next(m for m in ins.modifiers if m in COMBINE or m == "add")
    if name == "add" and kind in FORMATS:
        f = FORMATS[kind]
        flushes = kind == "f32" and space == "global"
        quiet = 0 if space == "global" else 1 << 51

        def add(old: int, x: int) -> int:
            nan = next((n for n in (x, old) if f.is_nan(n)), None)
            if kind == "f64" and nan is not None:
                return nan | quiet  # an H200's
            if not flushes:
                return f.add(old, x)
            return f.flush(f.add(f.flush(old), f.flush(x)))

        return add
    if name == "add":
        return lambda old, x: old + x & bits
    fn = COMBINE[name]
    if name in ("min", "max"):
        return lambda old, x: fn(number(old, kind), number(x, kind)) & bits
    return fn


COMBINE: dict[str, Any] = {
    "min": min,
    "max": max,
    "inc": lambda old, x: 0 if old >= x else old + 1,
    "dec": lambda old, x: x if old == 0 or old > x else old - 1,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "exch": lambda old, x: x,
    "cas": lambda old, compare, x: x if old == compare else old,
}


def atomic(
    code: Code, ins: Instruction, where: Any, space: str, kind: str, size: int, place: int
) -> Step:  # fmt: skip
    """``atom`` and ``red``."""
    if kind in ("f16", "bf16", "f16x2", "bf16x2"):
        raise NotModelled(ins.name)
    reads = [code.read(o, kind) for o in ins.operands[place + 1 :]]
    put = code.write(ins.operands[0], kind) if place else None
    fn = {s: combine(ins, kind, s) for s in ("global", "shared")}
    if code.launch.nan:
        fn = {s: with_nan(kind, bare, code.launch.nan) for s, bare in fn.items()}

    def apply(t: Thread, f: Frame) -> None:
        address = where(t, f)
        home, at = find(t, space, address, size)
        old = int.from_bytes(home[at : at + size], "little")
        shared = space == "shared" or (space == "generic" and address >= SHARED)
        new = fn["shared" if shared else "global"](old, *(r(t, f) for r in reads))
        home[at : at + size] = new.to_bytes(size, "little")
        if put:
            put(t, f, old)

    return apply

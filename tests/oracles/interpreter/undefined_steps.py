"""What each instruction does with undefined bits, as closures like those that do its work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernels.ptx.module import Address, Instruction, Pair, Reg, Symbol, Vector
from tests.oracles.interpreter import warp
from tests.oracles.interpreter.contents import Bits, spread
from tests.oracles.interpreter.definedness import Shadow
from tests.oracles.interpreter.values import WIDTH, NotModelled, mask, meaning

if TYPE_CHECKING:
    from tests.oracles.interpreter.decode import Code, Read, Step
    from tests.oracles.interpreter.machine import Frame, Thread

ALL = mask(64)


def beside(code: Code, ins: Instruction, bare: Step) -> Step:
    """An instruction that follows undefined bits first, and then does what it does."""
    shadow = _shadow(code, ins)
    if shadow is None:
        return bare

    def both(t: Thread, f: Frame) -> Any:
        shadow(t, f)
        return bare(t, f)

    return both


def guard(code: Code, ins: Instruction) -> Callable[[Frame], None]:
    """Looks at an instruction's guard."""
    follow = code.launch.follow
    assert follow
    assert ins.guard
    index, _ = code.register(ins.guard.name)
    return lambda f: follow.use(ins, "guard", f.unset[index])


def read(code: Code, operand: Any, kind: str) -> Read:
    """The undefined bits of a source operand."""
    if not isinstance(operand, Reg):
        return lambda t, f: 0
    index, _ = code.register(operand.name)
    bits = mask(WIDTH[kind])
    return lambda t, f: f.unset[index] & bits


def write(code: Code, operand: Any, kind: str) -> Callable[[Frame, int], None]:
    """Undefined bits of a destination; a sign that is one is extended."""
    if operand is None:
        return lambda f, x: None
    index, have = code.register(operand.name)
    wide = mask(WIDTH[have])
    above = wide & ~mask(WIDTH[kind])
    sign = 1 << WIDTH[kind] - 1 if kind[0] == "s" else 0

    def put(f: Frame, x: int) -> None:
        f.unset[index] = (x | above if x & sign else x) & wide

    return put


def _shadow(code: Code, ins: Instruction) -> Step | None:
    from tests.oracles.interpreter.access import space_of

    name, follow = ins.opcode, code.launch.follow
    assert follow
    if name in ("bra", "exit", "ret", "membar", "fence", "nanosleep", "activemask", "call"):
        return None
    if name == "brx":
        index = read(code, ins.operands[0], "u32")
        return lambda t, f: follow.use(ins, "index", index(t, f))
    if name in ("bar", "barrier", "shfl", "vote"):
        return _together(code, ins)
    if name in ("ld", "st", "atom", "red"):
        place = 0 if name in ("st", "red") else 1
        address = ins.operands[place]
        assert isinstance(address, Address)
        if space_of(ins) == "param" and isinstance(address.base, Symbol):
            return _parameter(code, ins, address.base.name, address.offset)
        return _memory(code, ins, place, address)
    if name == "mov" and any(isinstance(o, Vector) for o in ins.operands):
        return _pack(code, ins)
    if name == "cvta":
        index, put = read(code, ins.operands[1], "b64"), write(code, ins.operands[0], "b64")
        return lambda t, f: put(f, ALL if index(t, f) else 0)
    if name in ("match", "redux", "elect", "isspacep", "ldu"):
        raise NotModelled(f"{ins.name} of what may be undefined")
    return _value(code, ins)


def _items(operand: Any) -> list[Any]:
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def _memory(code: Code, ins: Instruction, place: int, address: Address) -> Step:
    """Loads, stores and atomics."""
    from tests.oracles.interpreter.access import combine, find, space_of

    follow, kind, space = code.launch.follow, ins.types[-1], space_of(ins)
    assert follow
    size = WIDTH[kind] // 8
    where, base = code.base(address), read(code, address.base, "b64")
    if ins.opcode == "ld":
        targets = [write(code, o, kind) for o in _items(ins.operands[0])]

        def load(t: Thread, f: Frame) -> None:
            follow.use(ins, "address", base(t, f))
            home, at = find(t, space, where(t, f), size)
            found = follow.load(follow.shadows(home), at, size * len(targets), ins.line)
            for i, put in enumerate(targets):
                put(f, found >> 8 * size * i & mask(8 * size))

        return load
    if ins.opcode == "st":
        sources = [read(code, o, kind) for o in _items(ins.operands[1])]

        def store(t: Thread, f: Frame) -> None:
            follow.use(ins, "address", base(t, f))
            home, at = find(t, space, where(t, f), size)
            for i, bits in enumerate(sources):
                follow.store(follow.shadows(home), at + i * size, size, bits(t, f))

        return store
    operands = ins.operands[place + 1 :]
    values = [code.read(o, kind) for o in operands]
    bits = [read(code, o, kind) for o in operands]
    fn = combine(ins, kind, "shared")
    put = write(code, ins.operands[0], kind) if place else None

    def atomic(t: Thread, f: Frame) -> None:
        follow.use(ins, "address", base(t, f))
        if ins.has("cas"):
            follow.use(ins, "comparison", bits[0](t, f))
        home, at = find(t, space, where(t, f), size)
        old = int.from_bytes(home[at : at + size], "little")
        unset = follow.load(follow.shadows(home), at, size, ins.line)
        given = (old, *(v(t, f) for v in values))
        (new,) = spread(fn, given, (unset, *(b(t, f) for b in bits)), (8 * size,))
        follow.store(follow.shadows(home), at, size, new)
        if put:
            put(f, unset)

    return atomic


def _parameter(code: Code, ins: Instruction, name: str, offset: int) -> Step:
    """``ld.param`` and ``st.param`` by name; the host sets all of a kernel's.

    Of functions', structures are memory and numbers are registers, which count as set.
    """
    follow, kind = code.launch.follow, ins.types[-1]
    assert follow
    size = WIDTH[kind] // 8
    if code.function.is_entry and any(name == p.name for p in code.function.params):
        puts = [write(code, o, kind) for o in _items(ins.operands[0])]
        return lambda t, f: [put(f, 0) for put in puts] and None

    declared = code.function.variables.get(name)
    mine = [p.is_struct for p in (*code.function.params, *code.function.results) if p.name == name]
    unset = b"\1" if (declared and declared.dims) or any(mine) else b"\0"

    def shadows(f: Frame, count: int) -> Shadow:
        empty, copied = f.unset_params.setdefault(name, (bytearray(), bytearray()))
        more = max(0, offset + size * count - len(empty))
        empty.extend(unset * more)
        copied.extend(bytes(more))
        return empty, copied

    if ins.opcode == "ld":
        targets = [write(code, o, kind) for o in _items(ins.operands[0])]

        def load(t: Thread, f: Frame) -> None:
            found = follow.load(shadows(f, len(targets)), offset, size * len(targets), ins.line)
            for i, put in enumerate(targets):
                put(f, found >> 8 * size * i & mask(8 * size))

        return load
    sources = [read(code, o, kind) for o in _items(ins.operands[1])]

    def store(t: Thread, f: Frame) -> None:
        for i, bits in enumerate(sources):
            follow.store(shadows(f, len(sources)), offset + i * size, size, bits(t, f))

    return store


def _pack(code: Code, ins: Instruction) -> Step:
    """``mov`` that packs or unpacks."""
    target, source = ins.operands
    size = WIDTH[ins.types[-1]]
    parts = _items(source if isinstance(source, Vector) else target)
    each = size // len(parts)
    if isinstance(source, Vector):
        bits = [read(code, o, f"b{each}") for o in parts]
        put = write(code, target, f"b{size}")
        return lambda t, f: put(f, sum(b(t, f) << i * each for i, b in enumerate(bits)))
    whole = read(code, source, f"b{size}")
    puts = [write(code, o, f"b{each}") for o in parts]

    def unpack(t: Thread, f: Frame) -> None:
        found = whole(t, f)
        for i, one in enumerate(puts):
            one(f, found >> i * each & mask(each))

    return unpack


def _value(code: Code, ins: Instruction) -> Step:
    """An instruction that computes; a condition code is a bit like others."""
    what = meaning(ins)
    carries, sets = ins.opcode in ("addc", "subc", "madc"), ins.has("cc")
    kinds = what.sources[:-1] if carries else what.sources
    sources = ins.operands[1:]
    values = [code.read(o, k) for o, k in zip(sources, kinds, strict=True)]
    bits = [read(code, o, k) for o, k in zip(sources, kinds, strict=True)]
    first = ins.operands[0]
    targets = [first.first, first.second] if isinstance(first, Pair) else [first]
    puts = [write(code, o, k) for o, k in zip(targets, what.results, strict=False)]
    widths = tuple(WIDTH[kind] for kind in what.results) + ((1,) if sets else ())
    moves = ins.opcode == "mov"

    def step(t: Thread, f: Frame) -> None:
        undefined = tuple(b(t, f) for b in bits) + ((f.unset_carry,) if carries else ())
        found: Bits
        if not any(undefined):
            found = (0,) * len(widths)
        elif moves:
            found = undefined
        else:
            given = tuple(v(t, f) for v in values) + ((f.carry,) if carries else ())
            found = spread(what.fn, given, undefined, widths)
        for put, result in zip(puts, found, strict=False):
            put(f, result)
        if sets:
            f.unset_carry = found[-1]

    return step


def _together(code: Code, ins: Instruction) -> Step:
    """What stands at a barrier or a warp instruction; ``together`` does the rest."""
    follow, name = code.launch.follow, ins.opcode
    assert follow
    operands = list(ins.operands)
    if name in ("bar", "barrier") and not ins.has("warp"):
        if ins.has("red"):
            raise NotModelled(f"{ins.name} of what may be undefined")
        kinds: tuple[str, ...] = ("u32",) * len(operands)
        steer = range(len(operands))
    else:
        kinds, results = warp.forms(ins)
        operands = operands[1:] if results else operands
        steer = range(len(kinds) - 1, len(kinds))
    reads = [read(code, o, k) for o, k in zip(operands, kinds, strict=True)]

    def step(t: Thread, f: Frame) -> None:
        t.undefined = tuple(r(t, f) for r in reads)
        for i in steer:
            follow.use(ins, "who waits", t.undefined[i])

    return step


def together(group: list[Thread], members: int) -> None:
    """The results' undefined bits of a shuffle or a vote, for all who take part."""
    first = group[0].wait
    assert first
    ins = first.ins
    if ins.opcode not in ("shfl", "vote"):
        return
    values = {t.lane: t.wait.values for t in group if t.wait}
    undefined = {t.lane: t.undefined for t in group}
    _, kinds = warp.forms(ins)
    target = ins.operands[0]
    targets = [target.first, target.second] if isinstance(target, Pair) else [target]
    for t in group:
        puts = [write(t.stack[-1].home, o, k) for o, k in zip(targets, kinds, strict=False)]
        if ins.opcode == "shfl":
            if any(undefined[t.lane][1:]):
                raise NotModelled("a shuffle from an undefined lane")
            source, inside = warp.shuffled(ins, t.lane, values[t.lane])
            found: Bits = (undefined[source if inside else t.lane][0], 0)
        else:
            lanes = sorted(values)

            def vote(*votes: int, lane: int = t.lane, lanes: list[int] = lanes) -> Bits:
                given = {n: (v, *values[n][1:]) for n, v in zip(lanes, votes, strict=True)}
                return warp.result(ins, lane, given, members)

            firsts = (tuple(of[n][0] for n in lanes) for of in (values, undefined))
            found = spread(vote, *firsts, (WIDTH[kinds[0]],))
        for put, bits in zip(puts, found, strict=False):
            put(t.stack[-1], bits)

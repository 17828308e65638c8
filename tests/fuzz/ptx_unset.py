"""Random PTX that copies uninitialised memory, and uses it or does not.

Each thread has 32 bytes of its own in local, shared and global memory, in part written. Registers
are loaded from there in other sizes than they were stored in, taken apart and put together,
masked, shifted, chosen, shuffled, handed to a function; at the end some bits of some of them
become a result. What of that is a use stands in ``tests/oracles/interpreter/definedness.py``.
"""

from collections.abc import Callable

import numpy as np

from tests.fuzz.ptx_program import INPUTS
from tests.fuzz.ptx_unset_program import BITS, KINDS, OWN, SPACES, WORDS, Program
from tests.fuzz.tree import Draw, Statement


class Writer:
    """Draws the statements."""

    def __init__(self, rng: Draw, threads: int) -> None:
        self.rng, self.threads, self.depth = rng, threads, 0

    def reg(self, c: str) -> str:
        return f"%{c}{self.rng.randrange(KINDS[c][1])}"

    def spaces(self, count: int) -> list[str]:
        return self.rng.choices(list(SPACES), (4, 4, 1), k=count)

    def place(self, size: int) -> tuple[str, str]:
        """A space, and an aligned place in it."""
        (space,) = self.spaces(1)
        return space, f"[{SPACES[space]}+{self.rng.randrange(0, OWN, size)}]"

    def constant(self, bits: int) -> str:
        edges = [0, 1, 255, 256, 0xFFFF, 1 << bits - 1, (1 << bits) - 1, (1 << bits - 1) - 1]
        value = self.rng.choice(edges) if self.rng.chance(0.7) else self.rng.getrandbits(bits)
        value &= (1 << bits) - 1
        return str(value) + "U" * (bits == 64) if bits != 16 else str(value - (value >> 15 << 16))

    def body(self, uniform: bool, size: int) -> list[Statement]:
        return [self.statement(uniform) for _ in range(size)]

    def statement(self, uniform: bool) -> Statement:
        ways: list[tuple[float, Callable[[], str | Statement]]] = [
            (5, self.load), (4, self.store), (2, self.copy), (2, self.pack), (6, self.compute),
            (3, self.compare), (0.6, self.atomic), (0.5, self.call), (0.7, self.guarded),
            (0.25, self.address), (1, self.member), (1, self.test),
        ]  # fmt: skip
        if self.depth < 2:
            ways += [(0.8, self.branch), (0.4, self.loop)]
        if uniform:
            ways += [(1, self.exchange), (1, self.shuffle)]
        made = self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
        return made if isinstance(made, Statement) else Statement(made)

    def load(self) -> str:
        rng = self.rng
        size = rng.choice([8, 16, 32, 32, 64, 64])
        c = "d" if size == 64 and rng.chance(0.2) else WORDS[size]
        kind = rng.choice("bus") + str(size)
        if (size == 8 and rng.chance(0.5)) or (size == 16 and rng.chance(0.3)):
            c, kind = "r", rng.choice("us") + str(size)
        if c == "d":
            kind = "f64"
        if size >= 16 and rng.chance(0.25):
            space, at = self.place(size // 4)
            first, second = rng.sample(range(KINDS[c][1]), 2)
            return f"ld.{space}.v2.{kind} {{%{c}{first}, %{c}{second}}}, {at};"
        space, at = self.place(size // 8)
        return f"ld.{space}.{kind} {self.reg(c)}, {at};"

    def store(self) -> str:
        size = self.rng.choice([8, 16, 32, 32, 64])
        c = "d" if size == 64 and self.rng.chance(0.2) else WORDS[size]
        if size == 32 and self.rng.chance(0.2):
            space, at = self.place(8)
            return f"st.{space}.v2.b32 {at}, {{{self.reg('r')}, {self.reg('r')}}};"
        space, at = self.place(size // 8)
        return f"st.{space}.b{size} {at}, {self.reg(c)};"

    def copy(self) -> str:
        """Some bytes go from one place to another, as ``memcpy`` copies a structure."""
        size = self.rng.choice([8, 32, 64])
        move = {8: "%h0", 32: "%r5", 64: "%l4"}[size]
        (one, here), (two, there) = ((s, self.rng.choice([0, 16])) for s in self.spaces(2))
        return "\n".join(
            f"ld.{one}.b{size} {move}, [{SPACES[one]}+{here + at}];\n"
            f"st.{two}.b{size} [{SPACES[two]}+{there + at}], {move};"
            for at in range(0, 16, size // 8)
        )

    def pack(self) -> str:
        rng, whole = self.rng, self.reg(self.rng.choice("lld"))
        one, two = rng.sample(range(KINDS["r"][1]), 2)
        halves = rng.sample(range(KINDS["h"][1]), 2)
        return rng.choice([
            f"mov.b64 {whole}, {{%r{one}, {self.reg('r')}}};",
            f"mov.b64 {{%r{one}, %r{two}}}, {whole};",
            f"mov.b32 {self.reg('r')}, {{%h{halves[0]}, {self.reg('h')}}};",
            f"mov.b32 {{%h{halves[0]}, %h{halves[1]}}}, {self.reg('r')};",
            f"mov.b64 {{_, %r{one}}}, {whole};",
        ])  # fmt: skip

    def compute(self) -> str:
        rng = self.rng
        c = rng.choice("hrrrll")
        bits, d, a, b = BITS[c], self.reg(c), self.reg(c), self.reg(c)
        other = self.constant(bits) if rng.chance(0.7) else b
        shift = rng.choice([0, 1, 4, 8, 15, 16, 24, 31, 32, 40, 63])
        words = [
            f"and.b{bits} {d}, {a}, {other};", f"or.b{bits} {d}, {a}, {other};",
            f"and.b{bits} {d}, {a}, {self.constant(bits)};",
            f"xor.b{bits} {d}, {a}, {other};", f"not.b{bits} {d}, {a};",
            f"shl.b{bits} {d}, {a}, {shift};", f"shr.{rng.choice('us')}{bits} {d}, {a}, {shift};",
            f"add.s{bits} {d}, {a}, {other};", f"sub.s{bits} {d}, {a}, {other};",
            f"mov.b{bits} {d}, {a};", f"selp.b{bits} {d}, {a}, {other}, {self.reg('p')};",
            f"min.u{bits} {d}, {a}, {other};",
            f"mul.lo.u{bits} {d}, {a}, {rng.choice([2, 3, 256])};",
            f"cvt.{rng.choice('us')}{bits}.{rng.choice('us')}16 {d}, {self.reg('h')};",
            f"cvt.{rng.choice('us')}{bits}.{rng.choice('us')}32 {d}, {self.reg('r')};",
            f"cvt.u{bits}.{rng.choice(['u8', 's8'])} {d}, {self.reg('r')};",
            f"cvt.u{bits}.u64 {d}, {self.reg('l')};",
        ]  # fmt: skip
        if c != "h":
            words += [
                f"bfe.{rng.choice('us')}{bits} {d}, {a}, {shift}, {rng.choice([1, 4, 8, 16])};",
                f"bfi.b{bits} {d}, {a}, {b}, {shift}, {rng.choice([1, 4, 8, 16])};",
                f"popc.b{bits} {self.reg('r')}, {a};",
                f"clz.b{bits} {self.reg('r')}, {a};",
            ]
        if c == "r":
            pick = rng.choice(["0x3210", "0x5410", "0x7632", "0x0123", "0x4321", "0x9810"])
            table = rng.choice([0x80, 0xFE, 0x96, 0xCA, 0xE8])
            words += [f"prmt.b32 {d}, {a}, {b}, {pick};",
                      f"lop3.b32 {d}, {a}, {b}, {other}, {table};",
                      f"shf.l.wrap.b32 {d}, {a}, {b}, {shift & 31};"]  # fmt: skip
        if rng.chance(0.1):
            return f"add.f64 {self.reg('d')}, {self.reg('d')}, {self.reg('d')};"
        return rng.choice(words)

    def member(self) -> str:
        """Of a place a half is stored, the whole is read, and a half is taken out of that."""
        rng = self.rng
        size = rng.choice([32, 64])
        half, (space, at) = size // 2, self.place(size // 8)
        kept, taken = rng.randrange(2), self.reg(WORDS[half])
        whole = self.reg(WORDS[size])
        out = [f"{taken}, _", f"_, {taken}"][kept if rng.chance(0.8) else 1 - kept]
        return (
            f"st.{space}.b{half} {at[:-1]}+{kept * half // 8}], {self.reg(WORDS[half])};\n"
            f"ld.{space}.b{size} {whole}, {at}; mov.b{size} {{{out}}}, {whole};\n"
            + self.depending(WORDS[half], taken)
        )

    def compare(self) -> str:
        rng = self.rng
        if rng.chance(0.25):
            join = rng.choice(["and", "or", "xor"])
            return f"{join}.pred {self.reg('p')}, {self.reg('p')}, {self.reg('p')};"
        c = rng.choice("hrrl")
        return self.compared(c, self.reg(c), self.reg("p"))

    def compared(self, c: str, value: str, into: str) -> str:
        rng = self.rng
        other = self.constant(BITS[c]) if rng.chance(0.7) else self.reg(c)
        how = rng.choice(["eq", "ne", "lt", "gt", "le", "ge"])
        return f"setp.{how}.{rng.choice('us')}{BITS[c]} {into}, {value}, {other};"

    def test(self) -> str:
        """What stands in a place is compared, and something depends on it."""
        size = self.rng.choice([16, 32, 32, 64])
        c, (space, at) = WORDS[size], self.place(size // 8)
        value = self.reg(c)
        return f"ld.{space}.b{size} {value}, {at};\n{self.depending(c, value)}"

    def depending(self, c: str, value: str) -> str:
        """A value is compared, and something depends on it."""
        p = self.reg("p")
        then = f"@{p} {self.compute()}"
        if self.rng.chance(0.5):
            then = f"selp.b32 {self.reg('r')}, 1, 2, {p};"
        return f"{self.compared(c, value, p)}\n{then}"

    def atomic(self) -> str:
        """On shared memory of its own; it may find uninitialised memory."""
        at = f"[%a2+{self.rng.randrange(0, OWN, 4)}]"
        how = self.rng.choice(["exch.b32", "or.b32", "and.b32", "xor.b32", "add.u32", "min.s32"])
        return f"atom.shared.{how} {self.reg('r')}, {at}, {self.reg('r')};"

    def call(self) -> str:
        return (
            "{\n.param .align 8 .b8 c0[16]; .param .b64 cr;\n"
            f"st.param.b64 [c0], {self.reg('l')}; st.param.b32 [c0+8], {self.reg('r')};\n"
            f"call.uni (cr), pass, (c0);\nld.param.b64 {self.reg('l')}, [cr];\n}}"
        )

    def guarded(self) -> str:
        return f"@{self.rng.choice(['', '!'])}{self.reg('p')} {self.compute()}"

    def address(self) -> str:
        space = self.rng.choice(["local", "shared"])
        return (
            f"and.b32 %t4, {self.reg('r')}, 28; cvt.u64.u32 %a5, %t4; "
            f"add.u64 %a5, %a5, {SPACES[space]}; ld.{space}.b32 {self.reg('r')}, [%a5];"
        )

    def inner(self) -> list[Statement]:
        self.depth += 1
        made = self.body(False, self.rng.randrange(1, 4))
        self.depth -= 1
        return made

    def branch(self) -> Statement:
        test = f"and.b32 %t4, %t0, {self.rng.choice([1, 2, 3])}; setp.ne.u32 %q0, %t4, 0;"
        if self.rng.chance(0.3):
            test = f"or.pred %q0, {self.reg('p')}, {self.reg('p')};"
        return Statement(
            f"{test} @%q0 bra T{{id}};\n{{0}}\nbra E{{id}};\nT{{id}}:\n{{1}}\nE{{id}}:",
            [self.inner(), self.inner()],
        )

    def loop(self) -> Statement:
        count = f"%t{5 + self.depth}"
        return Statement(
            f"mov.u32 {count}, 0;\nB{{id}}:\n{{0}}\nadd.u32 {count}, {count}, 1;\n"
            f"setp.lt.u32 %q1, {count}, {self.rng.choice([2, 3])};\n@%q1 bra B{{id}};",
            [self.inner()],
        )

    def exchange(self) -> str:
        """A neighbour's bytes."""
        size = self.rng.choice([32, 64])
        at = self.rng.randrange(0, OWN, size // 8)
        return f"""\
bar.sync 0; xor.b32 %t4, %t0, 1; min.u32 %t4, %t4, {self.threads - 1};
mov.u64 %a5, s; mad.wide.u32 %a5, %t4, 32, %a5;
ld.shared.b{size} {self.reg(WORDS[size])}, [%a5+{at}];
bar.sync 0;"""

    def shuffle(self) -> str:
        ways = ["idx.b32 D, S, 0, 31", "up.b32 D, S, 1, 0"]
        if self.threads % 2 == 0:  # else a lane's neighbour is not there
            ways.append("bfly.b32 D, S, 1, 31")
        how = self.rng.choice(ways)
        mask = hex((1 << min(self.threads, 32)) - 1)
        made = how.replace("D", self.reg("r")).replace("S", self.reg("r"))
        if self.rng.chance(0.3):
            vote = self.rng.choice(["any", "all"])
            return f"vote.sync.{vote}.pred {self.reg('p')}, {self.reg('p')}, {mask};"
        return f"shfl.sync.{made}, {mask};"

    def result(self, at: int) -> Statement:
        """Bits of a register are kept."""
        c = self.rng.choice("hrrllp")
        if c == "p":
            return Statement(
                f"selp.b32 %r3, 1, 2, {self.reg(c)};\nst.global.b32 [%a0+{8 * at}], %r3;"
            )
        bits, masked = BITS[c], "%l3" if c == "l" else f"%{c}3"
        kept = self.rng.choice([1, 255, 0xFF00 & (1 << bits - 1) - 1, (1 << bits // 2) - 1, 0x7FFF])
        if self.rng.chance(0.2):
            return Statement(f"st.global.b{bits} [%a0+{8 * at}], {self.reg(c)};")
        return Statement(
            f"and.b{bits} {masked}, {self.reg(c)}, {kept};\n"
            f"st.global.b{bits} [%a0+{8 * at}], {masked};"
        )


def draw(seed: int) -> Program:
    """The program of a seed."""
    rng = Draw(seed)
    threads = rng.choice([1, 2, 7, 8, 32, 64])
    writer = Writer(rng, threads)
    body = [Statement(writer.load()) for _ in range(rng.randrange(1, 5))]
    body += writer.body(True, rng.randrange(1, rng.choice([6, 20])))  # in a short one few reads
    results = [writer.result(i) for i in range(rng.randrange(1, 4))]
    inputs = np.array([rng.getrandbits(64) for _ in range(INPUTS)], np.uint64)
    host = [rng.chance(0.5) for _ in range(OWN // 8)]
    return Program(seed, body, results, (rng.choice([1, 1, 2]),), (threads,), inputs, host)

"""Statements of random PTX: memory, control flow, barriers, warps, atomics."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .ptx_program import BLOCKS, EDGES, INPUTS, KINDS, Program, value
from .rows import spellings
from .tree import Draw, Statement

LOADS = {
    "h": ["b16", "u16", "s16", "u8", "s8"], "r": ["b32", "u32", "s32", "u16", "s16", "u8", "s8"],
    "l": ["b64", "u64", "s64", "u32", "s32", "u16", "s16", "u8", "s8"], "f": ["f32", "b32"],
    "d": ["f64", "b64"],
}  # fmt: skip
SIZE = {"8": 1, "16": 2, "32": 4, "64": 8}


class Writer:
    """Draws the statements of one program."""

    def __init__(self, rng: Draw, program: Program) -> None:
        self.rng, self.program = rng, program
        self.threads = math.prod(program.block)
        self.depth = 0
        self.in_function = False
        self.widths = [w for w in (2, 4, 8, 16, 32) if self.threads % w == 0 or self.threads == w]

    def reg(self, c: str) -> str:
        return f"%{c}{self.rng.randrange(KINDS[c][1])}"

    def named(self, pattern: str) -> str:
        """One spelling of a pattern, noted."""
        name = self.rng.choice(spellings(pattern))
        self.program.names.add(name)
        return name

    def guard(self, p: float = 0.2) -> str:
        return f"@{self.rng.choice(['', '!'])}{self.reg('p')} " if self.rng.chance(p) else ""

    # -- anywhere -------------------------------------------------------------------

    def body(self, uniform: bool, size: int) -> list[Statement]:
        return [self.statement(uniform) for _ in range(size)]

    def statement(self, uniform: bool) -> Statement:
        """One statement; ``uniform`` where all threads of the block come."""
        rng = self.rng
        anywhere: list[tuple[float, Callable[[], Statement]]] = [
            (9, lambda: value(rng, self.program.names)), (2, self.pack), (1, self.carry),
        ]  # fmt: skip
        if not self.in_function:
            anywhere += [(3, self.own_memory), (2, self.constant_memory), (1.5, self.atomic),
                         (0.5, self.call), (0.4, self.address), (0.3, self.nothing)]  # fmt: skip
        if self.depth < 3:
            anywhere += [(1.2, self.branch), (0.8, self.loop), (0.5, self.switch)]
        if uniform:
            anywhere += [(1.5, self.exchange), (2.5, self.warp), (0.7, self.part_of_warp),
                         (0.5, self.reduce_barrier), (0.5, self.uniform_loop),
                         (0.5, self.whole_warps), (0.4, self.hand_over), (0.6, self.by_block),
                         (0.3, self.two_places), (0.3, self.warp_barrier)]  # fmt: skip
        weights = [w for w, _ in anywhere]
        return rng.choices([make for _, make in anywhere], weights)[0]()

    def pack(self) -> Statement:
        rng, reg = self.rng, self.reg
        two = rng.sample(range(5), 2)
        shapes = [
            f"mov.b64 {reg('l')}, {{{reg('r')}, {reg('r')}}};",
            f"mov.b64 {{%r{two[0]}, %r{two[1]}}}, {reg('l')};",
            f"mov.b32 {reg('r')}, {{{reg('h')}, {reg('h')}}};",
            f"mov.b32 {{%h{two[0]}, %h{two[1]}}}, {reg('r')};",
            f"mov.b64 {reg('l')}, {{{reg('h')}, {reg('h')}, {reg('h')}, {reg('h')}}};",
            f"mov.b64 {{%h{two[0]}, _, %h{two[1]}, _}}, {reg('l')};",
            f"mov.b64 {{_, %r{two[0]}}}, {reg('l')};",
            f"mov.b64 {reg('l')}, {{{reg('f')}, {reg('f')}}};",
            f"mov.b64 {{%f{two[0]}, %f{two[1]}}}, {reg('l')};",
            f"mov.b64 {reg('d')}, {{{reg('r')}, {reg('r')}}};",
            f"mov.b64 {{%r{two[0]}, %r{two[1]}}}, {reg('d')};",
        ]  # fmt: skip
        self.program.names.add("mov.pack")
        return Statement(self.guard() + rng.choice(shapes))

    def carry(self) -> Statement:
        """A chain through the condition code, which is one statement."""
        rng = self.rng
        kind = rng.choice(["u32", "s32", "u64", "s64"])
        c = "r" if kind.endswith("32") else "l"
        family = rng.choice(["add", "sub", "mad.lo", "mad.hi"])
        lines = []
        length = rng.randrange(2, 5)
        for i in range(length):
            name, _, half = family.partition(".")
            if i and name == "mad" and rng.chance(0.3):
                name, half = "add", ""
            word = f"{name}c" if i else name
            parts = [word, *([half] if half else []), *(["cc"] if i < length - 1 else []), kind]
            full = ".".join(parts)
            self.program.names.add(full)
            count = 3 if half else 2
            operands = ", ".join(self.reg(c) for _ in range(count + 1))
            lines.append(f"{full} {operands};")
        return Statement("\n".join(lines))

    # -- control flow ---------------------------------------------------------------

    def inner(self, size: int, uniform: bool = False) -> list[Statement]:
        self.depth += 1
        made = self.body(uniform, size)
        self.depth -= 1
        return made

    def branch(self) -> Statement:
        rng = self.rng
        p = rng.choice(["", "!"]) + self.reg("p")
        if rng.chance(0.5):
            text = f"@{p} bra L{{id}};\n{{0}}\nL{{id}}:"
            return Statement(text, [self.inner(rng.randrange(1, 4))])
        text = f"@{p} bra T{{id}};\n{{0}}\nbra E{{id}};\nT{{id}}:\n{{1}}\nE{{id}}:"
        return Statement(
            text, [self.inner(rng.randrange(1, 4)), self.inner(rng.randrange(1, 4))]
        )  # fmt: skip

    def loop(self) -> Statement:
        """A loop with its own counter, and perhaps a break and a continue."""
        rng = self.rng
        counter = f"%t{12 + self.depth}"
        limit = f"%t{16 + self.depth}"
        bound = f"and.b32 {limit}, {self.reg('r')}, {rng.choice([1, 3, 7])};"
        if rng.chance(0.4):
            bound = f"mov.u32 {limit}, {rng.randrange(1, 5)};"
        leave = f"@{self.reg('p')} bra E{{id}};" if rng.chance(0.4) else ""
        skip = f"@{self.reg('p')} bra N{{id}};" if rng.chance(0.4) else ""
        text = (
            f"mov.u32 {counter}, 0;\n{bound}\nB{{id}}:\n"
            f"setp.ge.u32 %q2, {counter}, {limit};\n@%q2 bra E{{id}};\n{{0}}\n{leave}\n{skip}\n"
            f"{{1}}\nN{{id}}:\nadd.u32 {counter}, {counter}, 1;\nbra.uni B{{id}};\nE{{id}}:"
        )
        return Statement(
            text, [self.inner(rng.randrange(1, 4)), self.inner(rng.randrange(0, 3))]
        )  # fmt: skip

    def switch(self) -> Statement:
        ways = self.rng.randrange(2, 5)
        self.program.names.add("brx.idx")
        lines = [
            f"rem.u32 %t20, {self.reg('r')}, {ways};",
            f"T{{id}}: .branchtargets {', '.join(f'W{{id}}_{i}' for i in range(ways))};",
            "brx.idx %t20, T{id};",
        ]
        for i in range(ways):
            fall = "" if self.rng.chance(0.2) else "bra E{id};"
            lines += [f"W{{id}}_{i}:", f"{{{i}}}", fall]
        lines.append("E{id}:")
        return Statement(
            "\n".join(lines), [self.inner(self.rng.randrange(1, 3)) for _ in range(ways)]
        )

    def call(self) -> Statement:
        number = self.rng.randrange(len(self.program.functions))
        self.program.names.add("call.uni")
        return Statement(
            "{\n.param .b32 c0; .param .b64 c1; .param .b32 c2; .param .b64 cr;\n"
            f"st.param.b32 [c0], {self.reg('r')};\nst.param.b64 [c1], {self.reg('l')};\n"
            f"st.param.f32 [c2], {self.reg('f')};\n"
            f"call.uni (cr), call_f{number}, (c0, c1, c2);\nld.param.b64 {self.reg('l')}, [cr];\n}}"
        )

    def nothing(self) -> Statement:
        name = self.named("{membar|fence.acq_rel|fence.sc}.{cta|gpu|sys}")
        if name.startswith("membar"):
            name = name.replace(".gpu", ".gl")
        return Statement(f"{name};")

    # -- memory ---------------------------------------------------------------------

    def typed(self, vectors: bool = True) -> tuple[str, list[str], int]:
        """A type, registers for it, and its bytes."""
        rng = self.rng
        count = rng.choice([1, 1, 1, 2, 4]) if vectors else 1
        c = rng.choice("hrlfd")
        kind = rng.choice(LOADS[c])
        size = SIZE["".join(x for x in kind if x.isdigit())]
        if count * size > 16:
            count = 16 // size
        registers = [f"%{c}{i}" for i in rng.sample(range(KINDS[c][1]), count)]
        return (f"v{count}.{kind}" if count > 1 else kind), registers, count * size

    def operand(self, registers: list[str]) -> str:
        return registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"

    def own_memory(self) -> Statement:
        """A load or a store of memory that the thread has to itself."""
        rng = self.rng
        where = rng.choice(["global", "local", "local", "shared", "generic", "dynamic"])
        kind, registers, width = self.typed()
        room = {"shared": 16, "global": 128}.get(where, 64)
        offset = rng.randrange(room // width) * width
        base, space = {"global": ("%a3", ".global"), "shared": ("%a5", ".shared")}.get(
            where, ("own", ".local")
        )
        before = ""
        if where == "generic":
            pick = rng.choice(["local", "shared", "global"])
            base = {"local": "%a6", "shared": "%a5", "global": "%a3"}[pick]
            before, space = f"cvta.{pick}.u64 %a9, {base};\n", ""
            offset %= {"local": 64, "shared": 16, "global": 128}[pick]
            base = "%a9"
        if where == "dynamic":
            before = (
                f"and.b32 %t9, {self.reg('r')}, {64 // width - 1};\n"
                f"mad.wide.u32 %a9, %t9, {width}, %a6;\n"
            )
            base, offset = "%a9", 0
        place = f"[{base}+{offset}]" if offset or rng.chance(0.5) else f"[{base}]"
        extra = rng.choice(["", "", ".volatile"]) if where in ("global", "shared") else ""
        if not extra and where == "global":
            extra = rng.choice(["", "", ".relaxed.gpu"])
        if rng.chance(0.5):
            name = f"ld{extra}{space}.{kind}"
            text = f"{name} {self.operand(registers)}, {place};"
        else:
            name = f"st{extra}{space}.{kind}"
            text = f"{name} {place}, {self.operand(registers)};"
        self.program.names.add(name)
        return Statement(before + self.guard() + text)

    def constant_memory(self) -> Statement:
        """A load of the inputs or of a table, at an index that the data gives."""
        rng = self.rng
        kind, registers, width = self.typed()
        if rng.chance(0.4):
            name = f"ld.const.{kind}"
            index, base, start = 64 // width, "%a10", "mov.u64 %a10, table;\n"
        else:
            name = rng.choice(["ld.global", "ld.global.nc", "ldu.global", "ld"]) + f".{kind}"
            index, base, start = INPUTS * 8 // width, "%a1", ""
        self.program.names.add(name)
        return Statement(
            f"{start}and.b32 %t9, {self.reg('r')}, {index - 1};\n"
            f"mad.wide.u32 %a9, %t9, {width}, {base};\n"
            f"{self.guard()}{name} {self.operand(registers)}, [%a9];"
        )

    def address(self) -> Statement:
        """Generic addresses there and back, and what space they lie in."""
        rng = self.rng
        space = rng.choice(["shared", "local", "global"])
        base = {"local": "%a6", "shared": "%a5", "global": "%a3"}[space]
        other = rng.choice(["shared", "local", "global"])
        self.program.names |= {f"cvta.{space}.u64", f"cvta.to.{space}.u64", f"isspacep.{other}"}
        return Statement(
            f"cvta.{space}.u64 %a9, {base};\nisspacep.{other} {self.reg('p')}, %a9;\n"
            f"cvta.to.{space}.u64 %a10, %a9;\nld.{space}.b64 {self.reg('l')}, [%a10];"
        )

    def atomic(self) -> Statement:
        """On the thread's own words anything; on shared ones what commutes, by its slot."""
        rng = self.rng
        if rng.chance(0.5):
            operations = [
                ("add", "u32"), ("add", "s32"), ("add", "u64"), ("add", "f32"), ("add", "f64"),
                ("min", "s32"), ("max", "u32"), ("min", "u64"), ("max", "s64"), ("inc", "u32"),
                ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b64"), ("exch", "b32"),
                ("exch", "b64"), ("cas", "b32"), ("cas", "b64"), ("min", "s64"), ("max", "u64"),
                ("min", "u32"), ("max", "s32"), ("and", "b64"), ("or", "b64"), ("xor", "b32"),
            ]  # fmt: skip
            operation, kind = rng.choice(operations)
            c = {"f32": "f", "f64": "d"}.get(kind, "r" if kind.endswith("32") else "l")
            space, base = rng.choice([(".global", "%a3"), (".shared", "%a5"), ("", "%a3")])
            sources = [self.reg(c) for _ in range(2 if operation == "cas" else 1)]
            result = f"{self.reg(c)}, "
            opcode = "atom"
            if rng.chance(0.3) and operation not in ("exch", "cas"):
                opcode, result = "red", ""
            words = rng.choice(["", "", ".relaxed.gpu", ".acq_rel.gpu" if opcode == "atom" else ""])
            name = f"{opcode}{words}{space}.{operation}.{kind}"
            self.program.names.add(name)
            return Statement(f"{self.guard()}{name} {result}[{base}+8], {', '.join(sources)};")
        slots = [
            ("add", "u32", "r"), ("xor", "b64", "l"), ("add", "u64", "l"), ("max", "u32", "r"),
            ("max", "s32", "r"), ("or", "b32", "r"), ("max", "u64", "l"),
        ]  # fmt: skip
        number = rng.randrange(len(slots))
        operation, kind, c = slots[number]
        space, base = rng.choice([(".global", "%a2"), (".shared", "%a7"), (".global", "%a2")])
        opcode, result = (
            ("red", "") if rng.chance(0.7) else ("atom", f"%{'t9' if c == 'r' else 'a9'}, ")
        )
        name = f"{opcode}{space}.{operation}.{kind}"
        self.program.names.add(name)
        return Statement(f"{self.guard()}{name} {result}[{base}+{8 * number}], {self.reg(c)};")

    # -- where all threads of the block come ------------------------------------------

    def barrier(self) -> str:
        """A barrier of the whole block, in one of its spellings."""
        number = self.rng.randrange(16)
        shapes = [
            (4, "bar.sync", "bar.sync 0;"), (1, "bar.sync", f"bar.sync {number};"),
            (1, "barrier.sync", f"barrier.sync {number};"),
            (1, "barrier.sync.aligned", f"barrier.sync.aligned {number};"),
            (1, "bar.cta.sync", f"bar.cta.sync {number};"),
        ]  # fmt: skip
        if self.threads % 32 == 0:
            shapes.append((2, "bar.sync counted", f"bar.sync {number}, {self.threads};"))
        _, name, text = self.rng.choices(shapes, [w for w, _, _ in shapes])[0]
        self.program.names.add(name)
        return text

    def exchange(self) -> Statement:
        """Each thread leaves something in shared memory, and reads another's."""
        rng = self.rng
        kind, registers, _ = self.typed()
        stored = self.operand([self.reg(r[1]) for r in registers])
        by = rng.randrange(self.threads)
        generic = rng.chance(0.3)
        space, convert = (".shared", "") if not generic else ("", "cvta.shared.u64 %a9, %a9;\n")
        self.program.names |= {f"st.shared.{kind}", f"ld{space}.{kind}"}
        return Statement(
            f"st.shared.{kind} [%a5], {stored};\n{self.barrier()}\n"
            f"add.u32 %t9, %t0, {by}; rem.u32 %t9, %t9, {self.threads};\n"
            f"mad.wide.u32 %a9, %t9, 16, %a4;\n{convert}"
            f"{self.guard()}ld{space}.{kind} {self.operand(registers)}, [%a9];\n{self.barrier()}"
        )

    def reduce_barrier(self) -> Statement:
        word, c = self.rng.choice([("popc.u32", "r"), ("and.pred", "p"), ("or.pred", "p")])
        name = self.rng.choice(["bar.red", "barrier.red.aligned"]) + f".{word}"
        self.program.names.add(name)
        p = self.rng.choice(["", "!"]) + self.reg("p")
        return Statement(f"{name} {self.reg(c)}, {self.rng.randrange(4)}, {p};")

    def hand_over(self) -> Statement:
        """The first warp writes and arrives; the others wait and read."""
        # No label may be called A7: ptxas 13.0 does not know it for one.
        if self.threads % 32 or self.threads < 64:
            return self.exchange()
        number = self.rng.randrange(1, 16)
        r = self.reg("r")
        self.program.names |= {"bar.arrive", "bar.sync counted"}
        return Statement(
            f"setp.lt.u32 %q2, %t0, 32;\n@%q2 st.shared.b32 [%a5], {self.reg('r')};\n"
            f"@%q2 bra W{{id}};\nbar.sync {number}, {self.threads};\n"
            f"and.b32 %t9, %t0, 31; mad.wide.u32 %a9, %t9, 16, %a4;\n"
            f"ld.shared.b32 {r}, [%a9];\nbra.uni E{{id}};\n"
            f"W{{id}}:\nbar.arrive {number}, {self.threads};\nE{{id}}:\nbar.sync 0;"
        )

    def uniform_loop(self) -> Statement:
        counter = f"%t{12 + self.depth}"
        times = self.rng.randrange(1, 5)
        body = self.inner(self.rng.randrange(1, 4), uniform=self.depth < 2)
        return Statement(
            f"mov.u32 {counter}, 0;\nB{{id}}:\n{{0}}\nadd.u32 {counter}, {counter}, 1;\n"
            f"setp.lt.u32 %q2, {counter}, {times};\n@%q2 bra.uni B{{id}};", [body],
        )  # fmt: skip

    def whole_warps(self) -> Statement:
        """Some warps go one way, all lanes together, and use each other there."""
        inside = [self.warp() for _ in range(self.rng.randrange(1, 3))]
        return Statement(
            "shr.u32 %t9, %t0, 5; and.b32 %t9, %t9, 1; setp.eq.u32 %q2, %t9, 0;\n"
            "@%q2 bra L{id};\n{0}\nL{id}:", [inside + self.inner(1)],
        )  # fmt: skip

    def by_block(self) -> Statement:
        """Blocks go different ways, and meet barriers there."""
        if self.depth > 1:
            return self.exchange()
        ways = [self.inner(self.rng.randrange(1, 3), uniform=True) for _ in range(2)]
        return Statement(
            "mov.u32 %t9, %ctaid.x; and.b32 %t9, %t9, 1; setp.eq.u32 %q2, %t9, 0;\n"
            "@%q2 bra T{id};\n{0}\nbra.uni E{id};\nT{id}:\n{1}\nE{id}:", ways,
        )  # fmt: skip

    def two_places(self) -> Statement:
        """The warps of a block meet one barrier from two places of the code."""
        if self.threads % 32 or self.threads < 64:
            return self.exchange()
        number = self.rng.randrange(1, 16)
        wait = f"bar.sync {number}, {self.threads};"
        self.program.names.add("bar.sync counted")
        value, target = self.reg("l"), self.reg("l")
        return Statement(
            f"st.shared.b64 [%a5], {value};\nsetp.lt.u32 %q2, %t0, 32;\n@%q2 bra T{{id}};\n"
            f"{{0}}\n{wait}\nbra.uni E{{id}};\nT{{id}}:\n{{1}}\n{wait}\nE{{id}}:\n"
            f"xor.b32 %t9, %t0, 32; min.u32 %t9, %t9, {self.threads - 1};\n"
            f"mad.wide.u32 %a9, %t9, 16, %a4;\nld.shared.b64 {target}, [%a9];\nbar.sync 0;",
            [self.inner(1), self.inner(1)],
        )  # fmt: skip

    def warp_barrier(self) -> Statement:
        """Each warp has a barrier of its own, by a number in a register."""
        if self.threads % 32:
            return self.exchange()
        value, target = self.reg("r"), self.reg("r")
        self.program.names.add("bar.sync register")
        return Statement(
            f"shr.u32 %t9, %t0, 5; add.u32 %t9, %t9, 1;\nst.shared.b32 [%a5], {value};\n"
            f"bar.sync %t9, 32;\nxor.b32 %t20, %t0, {self.rng.randrange(1, 32)};\n"
            f"mad.wide.u32 %a9, %t20, 16, %a4;\nld.shared.b32 {target}, [%a9];\n"
            f"bar.sync %t9, 32;"
        )

    def warp(self, mask: str = "-1", width: int = 0) -> Statement:
        """A warp instruction of the lanes of a mask; they stand in segments of ``width``."""
        rng = self.rng
        widths = [w for w in self.widths if not width or w <= width]
        kinds = ["vote", "vote", "match", "redux", "elect", "sync"] + ["shfl"] * 5 * bool(widths)
        if mask == "-1":
            kinds.append("activemask")
        kind = rng.choice(kinds)
        p = rng.choice(["", "!"]) + self.reg("p")
        if kind == "shfl":
            w = rng.choice(widths)
            mode = rng.choice(["up", "down", "bfly", "idx"])
            clamp = (32 - w) << 8 | (0 if mode == "up" else 31)
            amount = str(rng.randrange(w)) if rng.chance(0.6) else self.reg("r")
            before = ""
            if amount.startswith("%"):  # beyond the segment only the value stays one's own
                before = f"and.b32 %t9, {amount}, {w - 1};\n"
                amount = "%t9"
            target = self.reg("r") + (f"|{self.reg('p')}" if rng.chance(0.4) else "")
            name = f"shfl.sync.{mode}.b32"
            text = f"{before}{name} {target}, {self.reg('r')}, {amount}, {clamp}, {mask};"
        elif kind == "vote":
            mode = rng.choice(["all.pred", "any.pred", "uni.pred", "ballot.b32"])
            name = f"vote.sync.{mode}"
            text = f"{name} {self.reg('r' if mode == 'ballot.b32' else 'p')}, {p}, {mask};"
        elif kind == "match":
            size, c = rng.choice([("b32", "r"), ("b64", "l")])
            mode = rng.choice(["any", "all"])
            pair = f"|{self.reg('p')}" if mode == "all" and rng.chance(0.5) else ""
            name = f"match.{mode}.sync.{size}"
            text = f"{name} {self.reg('r')}{pair}, {self.reg(c)}, {mask};"
        elif kind == "redux":
            name = self.named(
                "redux.sync.{add.s32|add.u32|min.s32|min.u32|max.s32|max.u32|and.b32|or.b32|xor.b32}"
            )
            text = f"{name} {self.reg('r')}, {self.reg('r')}, {mask};"
        elif kind == "elect":
            name = "elect.sync"
            text = f"{name} {self.reg('r')}|{self.reg('p')}, {mask};"
        elif kind == "activemask":
            name = "activemask.b32"
            text = f"bar.warp.sync -1;\n{name} {self.reg('r')};"
        else:
            name = "bar.warp.sync"
            text = f"bar.warp.sync {mask};"
        self.program.names.add(name)
        return Statement(text)

    def part_of_warp(self) -> Statement:
        """The lanes of one segment branch off and use a mask of their own."""
        w = self.rng.choice([8, 16])
        inside = [self.warp("%t21", w) for _ in range(self.rng.randrange(1, 3))]
        if self.threads % w:
            inside = []
        return Statement(
            f"and.b32 %t9, %t0, {w}; setp.ne.u32 %q2, %t9, 0;\n@%q2 bra L{{id}};\n"
            f"and.b32 %t21, %t0, {31 & ~(2 * w - 1)}; bmsk.clamp.b32 %t21, %t21, {w};\n"
            "{0}\nL{id}:", [inside + self.inner(1)],
        )  # fmt: skip

    # -- the end --------------------------------------------------------------------

    def leave(self) -> Statement:
        """Some lanes exit; the others vote among themselves under a full mask."""
        votes = [
            self.rng.choice(
                [
                    f"vote.sync.ballot.b32 {self.reg('r')}, {self.reg('p')}, -1;",
                    f"match.any.sync.b32 {self.reg('r')}, {self.reg('r')}, -1;",
                    f"shfl.sync.bfly.b32 {self.reg('r')}, {self.reg('r')}, 0, 31, -1;",
                    f"redux.sync.add.s32 {self.reg('r')}, {self.reg('r')}, -1;",
                ]
            )
            for _ in range(2)
        ]
        how = self.rng.choice(["exit", "ret"])
        p = self.reg("p")
        gone = [f"st.global.b64 [%a3+{8 * i}], %l{i};" for i in range(6)] + [f"{how};"]
        stay = votes + [f"st.global.b32 [%a3+{4 * i}], %r{i};" for i in range(8)] + ["ret;"]
        first, second = self.rng.choice([(gone, stay), (stay, gone)])
        return Statement(
            "\n".join(["bar.sync 0;", f"@!{p} bra L{{id}};", *first, "L{id}:", *second])
        )


def draw(seed: int, entry: str = "k", small: bool = False) -> Program:
    """The program of a seed; a small one has few threads and statements."""
    rng = Draw(seed)
    edges = [bits for values in EDGES.values() for bits in values]
    words = [
        rng.choice(edges) | (rng.choice(edges) << 32) & (1 << 64) - 1
        if rng.chance(0.5)
        else rng.getrandbits(64)
        for _ in range(INPUTS)
    ]
    block = rng.choice(BLOCKS)
    grid = rng.choice([(1,), (1,), (2,), (2, 2)])
    if small:
        block, grid = rng.choice([(32,), (8,), (7,), (4, 2, 2)]), (1,)
    program = Program(seed, [], [], grid, block, np.array(words, np.uint64), entry=entry)
    writer = Writer(rng, program)
    writer.in_function = True
    program.functions = [writer.body(False, rng.randrange(2, 6)) for _ in range(2)]
    writer.in_function = False
    program.body = writer.body(True, rng.randrange(4, 9) if small else rng.randrange(6, 22))
    if rng.chance(0.25):
        program.body.append(writer.leave())
    return program

"""Statements of random PTX for one thread: registers, memory, atomics, fences."""

import math

from tests.fuzz.ptx_program import INPUTS, KINDS, Program
from tests.fuzz.rows import spellings
from tests.fuzz.tree import Draw, Statement

LOADS = {
    "h": ["b16", "u16", "s16", "u8", "s8"], "r": ["b32", "u32", "s32", "u16", "s16", "u8", "s8"],
    "l": ["b64", "u64", "s64", "u32", "s32", "u16", "s16", "u8", "s8"], "f": ["f32", "b32"],
    "d": ["f64", "b64"],
}  # fmt: skip
SIZE = {"8": 1, "16": 2, "32": 4, "64": 8}


class Memory:
    """Draws statements that need no other thread."""

    def __init__(self, rng: Draw, program: Program) -> None:
        self.rng, self.program = rng, program
        self.threads = math.prod(program.block)
        self.depth = 0
        self.in_function = False
        self.picked = False  # in a loop whose lanes may be picked out: they do not meet there
        self.apart = 0
        self.lent = 0  # above 0 where another block may read what the thread has in shared memory
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

    def nothing(self) -> Statement:
        name = self.named("{membar|fence.acq_rel|fence.sc}.{cta|gpu|sys}")
        if name.startswith("membar"):
            name = name.replace(".gpu", ".gl")
        return Statement(f"{name};")

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
        before, lent = "", self.lent and where == "shared"
        if where == "generic":
            pick = rng.choice(["local", "shared", "global"])
            base = {"local": "%a6", "shared": "%a5", "global": "%a3"}[pick]
            lent = self.lent and pick == "shared"
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
        if rng.chance(0.5) or lent:
            name = f"ld{extra}{space}.{kind}"
            text = f"{name} {self.operand(registers)}, {place};"
        else:
            name = f"st{extra}{space}.{kind}"
            text = f"{name} {place}, {self.operand(registers)};"
        self.program.names.add(name)
        return Statement(before + self.guard() + text)

    def in_a_row(self) -> Statement:
        """What generated code does together: loads from one base, and sums that add to each other.

        Perhaps something stands between that parts them; perhaps all of it in a loop.
        """
        rng, lines = self.rng, []
        kind = rng.choice(["u32", "f32", "b32"])
        c = "f" if kind == "f32" else "r"
        total = self.reg("f")
        for _ in range(rng.randrange(3, 6)):
            if rng.chance(0.8):
                lines.append(f"ld.shared.{kind} {self.reg(c)}, [%a5+{4 * rng.randrange(4)}];")
            if rng.chance(0.8):
                into = total if rng.chance(0.5) else self.reg("f")
                guard = self.guard(0.1)
                lines.append(
                    f"{guard}fma.rn.f32 {into}, {self.reg('f')}, {self.reg('f')}, {total};"
                )
                total = into
            if rng.chance(0.15):
                lines.append(f"st.shared.b32 [%a5+{4 * rng.randrange(4)}], {self.reg('r')};")
            if rng.chance(0.15):
                lines.append(f"add.f32 {self.reg('f')}, {self.reg('f')}, {total};")
        text = "\n".join(lines)
        if rng.chance(0.5):
            text = (
                f"mov.u32 %t12, 0;\nB{{id}}:\n{text}\nadd.u32 %t12, %t12, 1;\n"
                "setp.lt.u32 %q2, %t12, 3;\n@%q2 bra B{id};"
            )
        self.program.names.add("in a row")
        return Statement(text)

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
            shared = (".global", "%a3") if self.lent else (".shared", "%a5")
            return self.own_atomic(*rng.choice([(".global", "%a3"), shared, ("", "%a3")]))
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
        before = ""
        in_steps = kind in ("b64", "u64") and operation != "add"  # docs/measured.md, "Clusters"
        if self.program.cluster > 1 and not in_steps and rng.chance(0.5):
            before, space, base = self.another(rng.choice(["%t8", "%t22", self.reg("r")]), "%a7")
        name = f"{opcode}{space}.{operation}.{kind}"
        self.program.names.add(name)
        text = f"{self.guard()}{name} {result}[{base}+{8 * number}], {self.reg(c)};"
        return Statement(before + text)

    def own_atomic(self, space: str, base: str) -> Statement:
        """On a word that no other thread has to do with."""
        rng = self.rng
        operations = [
            ("add", "u32"), ("add", "s32"), ("add", "u64"), ("add", "f32"), ("add", "f64"),
            ("min", "s32"), ("max", "u32"), ("min", "u64"), ("max", "s64"), ("inc", "u32"),
            ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b64"), ("exch", "b32"),
            ("exch", "b64"), ("cas", "b32"), ("cas", "b64"), ("min", "s64"), ("max", "u64"),
            ("min", "u32"), ("max", "s32"), ("and", "b64"), ("or", "b64"), ("xor", "b32"),
        ]  # fmt: skip
        operation, kind = rng.choice(operations)
        c = {"f32": "f", "f64": "d"}.get(kind, "r" if kind.endswith("32") else "l")
        sources = [self.reg(c) for _ in range(2 if operation == "cas" else 1)]
        result = f"{self.reg(c)}, "
        opcode = "atom"
        if rng.chance(0.3) and operation not in ("exch", "cas"):
            opcode, result = "red", ""
        words = rng.choice(["", "", ".relaxed.gpu", ".acq_rel.gpu" if opcode == "atom" else ""])
        name = f"{opcode}{words}{space}.{operation}.{kind}"
        self.program.names.add(name)
        return Statement(f"{self.guard()}{name} {result}[{base}+8], {', '.join(sources)};")

    def another(self, number: str, address: str) -> tuple[str, str, str]:
        """An address in the block of the cluster that a number gives: how, its space, where."""
        space = self.rng.choice([".shared::cluster", ""])
        lines = [f"rem.u32 %t20, {number}, {self.program.cluster};"]
        lines += [f"cvta.shared.u64 %a10, {address};"] if not space else []
        lines.append(f"mapa{space}.u64 %a10, {address if space else '%a10'}, %t20;")
        self.program.names.add(f"mapa{space}.u64")
        return "\n".join([*lines, ""]), space, "%a10"

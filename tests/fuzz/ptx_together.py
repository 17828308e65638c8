"""Statements of random PTX for threads together: barriers, shared memory, warps."""

import re

from tests.fuzz.ptx_memory import Memory
from tests.fuzz.tree import Statement


class Together(Memory):
    """Draws statements to which all threads of the block come."""

    def statement(self, uniform: bool) -> Statement:
        raise NotImplementedError

    def body(self, uniform: bool, size: int) -> list[Statement]:
        return [self.statement(uniform) for _ in range(size)]

    def inner(self, size: int, uniform: bool = False) -> list[Statement]:
        self.depth += 1
        made = self.body(uniform, size)
        self.depth -= 1
        return made

    def barrier(self) -> str:
        """A barrier of the whole block, in one of its spellings."""
        number = self.rng.randrange(12)
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

    def neighbours(self) -> Statement:
        """Threads read what another block of the cluster has in its shared memory, or write it."""
        rng, blocks = self.rng, self.program.cluster
        kind, registers, _ = self.typed()
        stored, target = self.operand([self.reg(r[1]) for r in registers]), self.operand(registers)
        aligned = rng.choice(["", ".aligned"])
        arrive = f"barrier.cluster.arrive{rng.choice(['', '.release'])}{aligned};"
        wait = f"barrier.cluster.wait{rng.choice(['', '.acquire'])}{aligned};"
        which = "mov.u32 %t20, %cluster_ctarank;\n"
        which += f"add.u32 %t20, %t20, {rng.randrange(1, blocks)}; rem.u32 %t20, %t20, {blocks};\n"
        space = rng.choice([".shared::cluster", ""])
        mapa = f"{which}mapa{space}.u64 %a9, %a9, %t20;\n"
        if not space:
            mapa = f"cvta.shared.u64 %a9, %a9;\n{mapa}"
        rank = f"getctarank{space}.u64 {self.reg('r')}, %a9;\n"
        self.program.names |= {f"mapa{space}.u64", f"getctarank{space}.u64", "barrier.cluster"}
        if rng.chance(0.5):
            text = (
                f"st.shared.{kind} [%a5], {stored};\n{arrive}\n{{0}}\n{wait}\n"
                f"add.u32 %t9, %t0, {rng.randrange(self.threads)};\n"
                f"rem.u32 %t9, %t9, {self.threads};\nmad.wide.u32 %a9, %t9, 16, %a4;\n{mapa}{rank}"
                f"{self.guard()}ld{space}.{kind} {target}, [%a9];\n{arrive}\n{wait}"
            )
            # What a thread stores between arrive and wait is not ordered before the others' loads.
            self.lent += 1
            between = self.inner(1)
            self.lent -= 1
            return Statement(text, [between])
        write = f"st{space}.{kind} [%a9], {stored};"
        if rng.chance(0.5):
            write = "\n".join(self.own_atomic(space, "%a9").text for _ in range(2))
        return Statement(
            f"mov.u64 %a9, %a5;\n{mapa}{arrive}\n{wait}\n{write}\n"
            f"{rank}{arrive}\n{wait}\nld.shared.{kind} {target}, [%a5];\n{arrive}\n{wait}"
        )

    def places(self) -> Statement:
        """Where a block stands in its cluster, and the cluster in the grid."""
        names = ["cluster_ctarank", "cluster_nctarank"]
        for name in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid"):
            names += [f"{name}.{axis}" for axis in "xyz"]
        return Statement(f"mov.u32 {self.reg('r')}, %{self.rng.choice(names)};")

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
        number = self.rng.randrange(1, 12)
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
        self.apart += 1
        ways = [self.inner(self.rng.randrange(1, 3), uniform=True) for _ in range(2)]
        self.apart -= 1
        return Statement(
            "mov.u32 %t9, %ctaid.x; and.b32 %t9, %t9, 1; setp.eq.u32 %q2, %t9, 0;\n"
            "@%q2 bra T{id};\n{0}\nbra.uni E{id};\nT{id}:\n{1}\nE{id}:", ways,
        )  # fmt: skip

    def two_places(self) -> Statement:
        """The warps of a block meet one barrier from two places of the code."""
        if self.threads % 32 or self.threads < 64:
            return self.exchange()
        number = self.rng.randrange(1, 12)
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
        """Each warp has a barrier of its own, by a number in a register that no other has."""
        if self.threads % 32:
            return self.exchange()
        value, target = self.reg("r"), self.reg("r")
        self.program.names.add("bar.sync register")
        return Statement(
            f"shr.u32 %t9, %t0, 5; add.u32 %t9, %t9, 12;\nst.shared.b32 [%a5], {value};\n"
            f"bar.sync %t9, 32;\nxor.b32 %t20, %t0, {self.rng.randrange(1, 32)};\n"
            f"mad.wide.u32 %a9, %t20, 16, %a4;\nld.shared.b32 {target}, [%a9];\n"
            f"bar.sync %t9, 32;\nbar.sync 0;"  # another may use these numbers for all warps
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
            f"""\
and.b32 %t9, %t0, {w}; setp.ne.u32 %q2, %t9, 0;
@%q2 bra L{{id}};
and.b32 %t21, %t0, {31 & ~(2 * w - 1)}; bmsk.clamp.b32 %t21, %t21, {w};
{{0}}
L{{id}}:""", [inside + self.inner(1)],
        )  # fmt: skip

    def copies(self) -> Statement:
        """Lanes part, and execute one warp instruction at two copies that differ in registers."""
        met = self.warp()
        while "activemask" in met.text:
            met = self.warp()
        other = re.sub(r"%([rlp])\d\b", lambda m: self.reg(m[1]), met.text)
        self.program.names.add("copies")
        return Statement(
            f"@{self.rng.choice(['', '!'])}{self.reg('p')} bra T{{id}};\n{{0}}\n{met.text}\n"
            f"bra E{{id}};\nT{{id}}:\n{other}\n{{1}}\nE{{id}}:", [self.inner(1), self.inner(1)],
        )  # fmt: skip

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
            "\n".join([self.program.meeting(), f"@!{p} bra L{{id}};", *first, "L{id}:", *second])
        )

"""Random PTX: control flow about the statements that `ptx_memory` and `ptx_together` have."""

import math
from collections.abc import Callable

import numpy as np

from tests.fuzz.ptx_program import ALIKE, BLOCKS, EDGES, INPUTS, KINDS, Program, filled, value
from tests.fuzz.ptx_together import Together
from tests.fuzz.tree import Draw, Statement


class Writer(Together):
    """Draws the statements of one program: any of them, and control flow."""

    def statement(self, uniform: bool) -> Statement:
        """One statement; ``uniform`` where all threads of the block come."""
        rng = self.rng
        anywhere: list[tuple[float, Callable[[], Statement]]] = [
            (9, lambda: value(rng, self.program.names)), (2, self.pack), (1, self.carry),
        ]  # fmt: skip
        if not self.in_function:
            anywhere += [(3, self.own_memory), (2, self.constant_memory), (1, self.alike)]
        if not self.in_function and not self.picked:
            anywhere += [(1.5, self.atomic), (0.5, self.call), (0.4, self.address),
                         (0.3, self.nothing)]  # fmt: skip
        if self.depth < 3:
            anywhere += [(1.2, self.branch), (0.8, self.loop)]
            anywhere += [] if self.picked else [(0.5, self.switch)]
        if not self.in_function and not self.picked and self.depth < 3:
            anywhere += [(1.5, lambda: self.loop(few=True))]
        if uniform:
            anywhere += [(1.5, self.exchange), (2.5, self.warp), (0.7, self.part_of_warp),
                         (0.7, self.copies), (0.5, self.reduce_barrier), (0.5, self.uniform_loop),
                         (0.5, self.whole_warps), (0.4, self.hand_over), (0.6, self.by_block),
                         (0.3, self.two_places), (0.3, self.warp_barrier)]  # fmt: skip
            if self.program.cluster > 1 and not self.apart:
                anywhere += [(3, self.neighbours), (1, self.places)]
        weights = [w for w, _ in anywhere]
        return rng.choices([make for _, make in anywhere], weights)[0]()

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

    def alike(self) -> Statement:
        """A register gets a value that some threads have alike: a block's, a warp's, all."""
        c, which = self.rng.choice([*KINDS]), self.rng.choice([*ALIKE])
        self.program.names.add(f"alike: {which}")
        factor, start = self.rng.randrange(1, INPUTS, 2), self.rng.randrange(INPUTS)
        return Statement(filled(self.reg(c), ALIKE[which], factor, start))

    def loop(self, few: bool = False) -> Statement:
        """A loop with its own counter, and perhaps a break and a continue.

        ``few``: few lanes stay for long, and do what they can do without the others.
        """
        rng = self.rng
        counter = f"%t{12 + self.depth}"
        limit = f"%t{16 + self.depth}"
        bound = f"and.b32 {limit}, {self.reg('r')}, {rng.choice([1, 3, 7])};"
        if rng.chance(0.4):
            bound = f"mov.u32 {limit}, {rng.randrange(1, 5)};"
        if few:
            one_of = rng.randrange(2, 20)
            bound = (
                f"rem.u32 {limit}, %t{rng.randrange(2)}, {one_of};\n"
                f"setp.eq.u32 %q2, {limit}, {rng.randrange(one_of)};\n"
                f"selp.u32 {limit}, 4, 1, %q2;"
            )
        leave = f"@{self.reg('p')} bra E{{id}};" if rng.chance(0.4) else ""
        skip = f"@{self.reg('p')} bra N{{id}};" if rng.chance(0.4) else ""
        before, self.picked = self.picked, self.picked or few
        bodies = [self.inner(rng.randrange(1, 4)), self.inner(rng.randrange(0, 3))]
        self.picked = before
        text = (
            f"mov.u32 {counter}, 0;\n{bound}\nB{{id}}:\n"
            f"setp.ge.u32 %q2, {counter}, {limit};\n@%q2 bra E{{id}};\n{{0}}\n{leave}\n{skip}\n"
            f"{{1}}\nN{{id}}:\nadd.u32 {counter}, {counter}, 1;\nbra.uni B{{id}};\nE{{id}}:"
        )
        return Statement(text, bodies)

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
    other = Draw(seed ^ 0xC1)
    if not small and other.chance(0.25):
        program.cluster = other.choice([2, 2, 3, 4])
        program.grid = (program.cluster * other.choice([1, 1, 2]), other.choice([1, 1, 2]))
    program.alike = ("thread", *(other.choice([*ALIKE]) for _ in range(other.choice([1, 2, 6]))))
    if math.prod(program.grid) == 1 and math.prod(block) < 64:
        program.grid = (other.choice([1, 2, 3]),)
    writer = Writer(rng, program)
    writer.in_function = True
    program.functions = [writer.body(False, rng.randrange(2, 6)) for _ in range(2)]
    writer.in_function = False
    program.body = writer.body(True, rng.randrange(4, 9) if small else rng.randrange(6, 22))
    if rng.chance(0.25):
        program.body.append(writer.leave())
    more = Writer(Draw(seed ^ 0xF3), program)
    for _ in range(more.rng.choice([0, 1, 2])):
        program.body.insert(more.rng.randrange(len(program.body) + 1), more.in_a_row())
    return program

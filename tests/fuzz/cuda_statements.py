"""Random statements of CUDA C++."""

from collections.abc import Callable

from tests.fuzz.cuda_program import ALIKE, start
from tests.fuzz.cuda_terms import Terms
from tests.fuzz.tree import Draw, Statement


class Writer:
    """Draws the statements of one program."""

    def __init__(self, rng: Draw, terms: Terms, threads: int) -> None:
        self.rng, self.terms, self.threads = rng, terms, threads
        self.depth = 0
        self.in_function = False
        self.loops = 0
        self.widths = [w for w in (2, 4, 8, 16, 32) if threads % w == 0]

    def body(self, uniform: bool, size: int) -> list[Statement]:
        return [self.statement(uniform) for _ in range(size)]

    def inner(self, uniform: bool = False, most: int = 3) -> list[Statement]:
        self.depth += 1
        made = self.body(uniform, self.rng.randrange(1, most + 1))
        self.depth -= 1
        return made

    def statement(self, uniform: bool) -> Statement:
        choices: list[tuple[float, Callable[[], Statement]]] = [(6, self.assign)]
        if self.depth < 3:
            choices += [(1.5, self.branch), (1.2, self.loop), (0.6, self.switch)]
        if self.loops:
            choices += [(0.5, self.jump)]
        if self.in_function:
            choices += [(0.5, self.early)]
        else:
            choices += [(1, self.element), (1, self.atomic), (1, self.alike)]
            if self.depth < 3:
                choices += [(1, self.few_stay)]
        if uniform:
            choices += [(1.5, self.exchange), (3, self.warp), (0.5, self.count),
                        (0.6, self.uniform_loop), (0.4, self.part)]  # fmt: skip
        return self.rng.choices([make for _, make in choices], [w for w, _ in choices])[0]()

    def assign(self) -> Statement:
        kind = self.terms.any_kind()
        target, value = self.terms.variable(kind), self.terms.expression(kind, 3)
        return Statement(f"{target} = {value};")

    def element(self) -> Statement:
        """The local array, or the struct."""
        if self.rng.chance(0.4):
            name = self.rng.choice("abcd")
            kind = {"a": "int", "b": "unsigned char", "c": "long long", "d": "short"}[name]
            return Statement(f"box.{name} = {self.terms.expression(kind, 2)};")
        if self.rng.chance(0.2):
            return Statement(f"{{ Box other = box; other.a ^= {self.terms.expression('int', 1)}; "
                             f"if ({self.terms.test()}) box = other; }}")  # fmt: skip
        if self.rng.chance(0.2):
            return Statement(f"i1 = table[{self.terms.expression('unsigned', 1)} & 7];")
        index = self.terms.expression("unsigned", 1)
        return Statement(f"loc[{index} & 7] = {self.terms.expression('long long', 2)};")

    def alike(self) -> Statement:
        """A variable gets a value that some threads have alike: a block's, a warp's, all."""
        kind = self.terms.any_kind()
        return Statement(f"{self.terms.variable(kind)} = {start(kind, self.input())};")

    def input(self, more: str = "0") -> str:
        """An input, by what some threads have alike and a number."""
        number, factor = self.rng.choice([*ALIKE.values()]), self.rng.randrange(1, 64, 2)
        return f"in[({number} * {factor} + {more} + {self.rng.randrange(64)}) & MASK]"

    def few_stay(self) -> Statement:
        """Few lanes stay in a loop, and some variables keep what is alike while they do."""
        name, made, bodies = f"n{self.depth}", [], self.inner(most=2)
        for kind in self.rng.sample(["unsigned", "long long", "unsigned long long", "int"], 2):
            variable = self.terms.variable(kind)
            made.append(f"{variable} = {start(kind, self.input())};\n")
            bodies.append(Statement(f"{variable} += {start(kind, self.input(name))};"))
        one_of = self.rng.randrange(2, 20)
        stays = f"{self.rng.choice('tg')} % {one_of} == {self.rng.randrange(one_of)}"
        return Statement(
            f"{''.join(made)}\n#pragma unroll 1\n"
            f"for (int {name} = 0; {name} < ({stays} ? 4 : 1); {name}++) {{\n{{0}}\n}}", [bodies],
        )  # fmt: skip

    def branch(self) -> Statement:
        if self.rng.chance(0.5):
            return Statement(f"if ({self.terms.test(2)}) {{\n{{0}}\n}}", [self.inner()])
        return Statement(
            f"if ({self.terms.test(2)}) {{\n{{0}}\n}} else {{\n{{1}}\n}}",
            [self.inner(), self.inner()],
        )

    def loop(self) -> Statement:
        rng = self.rng
        name = f"n{self.depth}"
        # Loops in loops, and in functions that loops call, are short: rounds multiply.
        most = 3 if self.loops or self.in_function else 7
        bound = (
            str(rng.randrange(1, most - 1))
            if rng.chance(0.4)
            else f"(int)({self.terms.expression('unsigned', 1)} & {rng.choice([1, most])})"
        )
        self.loops += 1
        body = self.inner()
        self.loops -= 1
        text = rng.choice([
            f"for (int {name} = 0; {name} < {bound}; {name}++) {{{{\n{{0}}\n}}}}",
            f"{{{{ int {name} = {bound}; while ({name}-- > 0) {{{{\n{{0}}\n}}}} }}}}",
            f"{{{{ int {name} = 0; const int m = {bound};\n"
            f"do {{{{\n{{0}}\n}}}} while (++{name} < m); }}}}",
        ])  # fmt: skip
        pragma = "#pragma unroll 1\n" if text.startswith("for") and rng.chance(0.5) else ""
        return Statement(pragma + text.replace("{{", "{").replace("}}", "}"), [body])

    def jump(self) -> Statement:
        return Statement(f"if ({self.terms.test()}) {self.rng.choice(['break', 'continue'])};")

    def early(self) -> Statement:
        return Statement(
            f"if ({self.terms.test()}) return {self.terms.expression('long long', 1)};"
        )

    def switch(self) -> Statement:
        ways = self.rng.randrange(2, 7)
        loops, self.loops = self.loops, 0  # a continue may pass through, a break may not
        bodies = [self.inner(most=2) for _ in range(ways)]
        self.loops = loops
        cases = []
        for i in range(ways):
            label = "default" if i == ways - 1 else f"case {i}"
            cases.append(f"{label}:\n{{{i}}}\n{'break;' if self.rng.chance(0.8) else ''}")
        index = self.terms.expression("unsigned", 1)
        return Statement(f"switch ({index} % {ways + 1}) {{\n" + "\n".join(cases) + "\n}", bodies)

    def atomic(self) -> Statement:
        """On the thread's own words anything; on others what commutes, by its slot."""
        rng, e = self.rng, self.terms.expression
        if rng.chance(0.5):
            return Statement(rng.choice([
                lambda: f"u0 = atomicAdd((unsigned*)own, {e('unsigned')});",
                lambda: f"i1 = atomicMin((int*)own, {e('int')});",
                lambda: f"w1 = atomicMax(own, {e('unsigned long long')});",
                lambda: f"w2 = atomicCAS(own, w0, {e('unsigned long long')});",
                lambda: f"i2 = atomicExch((int*)own + 1, {e('int')});",
                lambda: f"u1 = atomicInc((unsigned*)(s + t), {e('unsigned')});",
                lambda: f"w0 ^= atomicXor(s + t, {e('unsigned long long')});",
                lambda: f"f1 = atomicAdd((float*)own, {e('float')});",
                lambda: f"d1 = atomicAdd((double*)own, {e('double')});",
            ])())  # fmt: skip
        slot = rng.randrange(4)
        home = rng.choice(["count", "sums"])
        return Statement([
            f"atomicAdd({home}, {e('unsigned long long')});",
            f"atomicMax((unsigned*)({home} + 1), {e('unsigned')});",
            f"atomicXor({home} + 2, {e('unsigned long long')});",
            f"atomicMax((int*)({home} + 3), {e('int')});",
        ][slot])  # fmt: skip

    # -- where all threads of the block come ------------------------------------------

    def exchange(self) -> Statement:
        value = self.terms.expression("unsigned long long", 2)
        by = self.rng.randrange(self.threads)
        kind = self.rng.choice(["u64", "double", "int"])
        read = {"u64": "w1 = s[p];", "double": "d1 = ((double*)s)[p];",
                "int": "i1 = ((int*)s)[2 * p];"}[kind]  # fmt: skip
        return Statement(
            f"s[t] = {value};\n__syncthreads();\n"
            f"{{ unsigned p = (t + {by}) % THREADS; {read} }}\n__syncthreads();"
        )

    def count(self) -> Statement:
        name = self.rng.choice(["count", "and", "or"])
        return Statement(f"i2 = __syncthreads_{name}({self.terms.test()});")

    def uniform_loop(self) -> Statement:
        name = f"n{self.depth}"
        loops, self.loops = self.loops, 0
        times = self.rng.randrange(1, 3 if self.depth else 5)
        body = self.inner(uniform=self.depth < 2)
        self.loops = loops
        unroll = self.rng.choice(["", "#pragma unroll 1\n"])
        return Statement(
            f"{unroll}for (int {name} = 0; {name} < {times}; {name}++) {{\n{{0}}\n}}",
            [body],
        )

    def warp(self, mask: str = "~0u", width: int = 0) -> Statement:
        rng, e = self.rng, self.terms.expression
        widths = [w for w in self.widths if not width or w <= width]
        if widths and rng.chance(0.6):
            kind = rng.choice(["int", "unsigned", "long long", "unsigned long long", "float",
                               "double", "__half"])  # fmt: skip
            w = rng.choice(widths)
            how = rng.choice(["shfl", "shfl_up", "shfl_down", "shfl_xor"])
            by = str(rng.randrange(w)) if rng.chance(0.7) else f"({e('int', 1)} & {w - 1})"
            if how == "shfl" and mask != "~0u":
                by = str(rng.randrange(w))
            value = self.terms.variable(kind) if kind == "__half" else e(kind, 2)
            target = self.terms.variable(kind)
            return Statement(f"{target} = __{how}_sync({mask}, {value}, {by}, {w});")
        return Statement(rng.choice([
            lambda: f"u1 = __ballot_sync({mask}, {self.terms.test()});",
            lambda: f"i1 = __any_sync({mask}, {self.terms.test()});",
            lambda: f"i2 = __all_sync({mask}, {self.terms.test()});",
            lambda: f"u2 = __match_any_sync({mask}, {e('int', 1)} & 3);",
            lambda: f"u2 = __match_any_sync({mask}, {e('long long', 1)});",
            lambda: f"u0 = __match_all_sync({mask}, {e('unsigned', 1)} & 1, &i1);",
            lambda: f"u1 = __reduce_add_sync({mask}, {e('unsigned', 1)});",
            lambda: f"i1 = __reduce_min_sync({mask}, {e('int', 1)});",
            lambda: f"u0 = __reduce_xor_sync({mask}, {e('unsigned', 1)});",
            lambda: f"__syncwarp({mask});",
        ])())  # fmt: skip

    def part(self) -> Statement:
        """Some lanes of each warp branch off and use a mask of their own."""
        w = self.rng.choice([8, 16])
        if self.threads % w:
            return self.assign()
        inside = [self.warp("mask", w) for _ in range(self.rng.randrange(1, 3))]
        return Statement(
            f"if (!(t & {w})) {{\n"
            f"unsigned mask = {(1 << w) - 1}u << (t & {31 & ~(2 * w - 1)});\n{{0}}\n}}",
            [inside + self.inner()],
        )

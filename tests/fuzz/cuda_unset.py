"""Random CUDA C++ that copies structures, set in part, and uses a field of them or does not."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels import Kernel, unset
from tests.fuzz.compare import Launch
from tests.fuzz.tree import Draw, Statement, render

FIELDS = {
    "char": "i1", "unsigned char": "u1", "short": "i2", "int": "i4", "long long": "i8",
    "float": "f4", "double": "f8",
}  # fmt: skip
NAMES = "abcdef"
KERNEL = """\
struct S { FIELDS };
static __device__ __noinline__ S pass(S v) { return v; }
static __device__ __noinline__ S choose(const S* one, const S* two, int which) {
  return which ? *one : *two;
}
static __device__ ATTRIBUTE void fill(S& v, int i) { FILL }
extern "C" __global__ void k(long long* out, const int* in, S* part) {
  __shared__ S s[THREADS], d[THREADS];
  int t = threadIdx.x, g = blockIdx.x * THREADS + t, i = in[g & 15];
  long long sum = 0;
  S v0, v1, v2, loc[4]; int maybe;
  BODY
  out[g] = sum;
}
"""


@dataclass
class Program:
    """A structure, statements about it, and a launch.

    Attributes:
        given: How the array of structures is: see ``launch``.
        result: What a thread stores there at the end, if that is all that is used.
    """

    seed: int
    fields: list[tuple[str, str, int]]
    fill: list[Statement]
    body: list[Statement]
    block: tuple[int, ...]
    inputs: np.ndarray
    attribute: str
    given: str
    result: str = ""
    grid: tuple[int, ...] = (1,)

    def trees(self) -> list[list[Statement]]:
        return [self.body, self.fill]

    def source(self) -> str:
        fields = " ".join(
            f"{kind} {name}{f' : {bits}' if bits else ''};" for name, kind, bits in self.fields
        )
        body = render(self.body)
        if self.result:  # all that is used is what the array of structures holds at the end
            kept = [line for line in body.splitlines() if "sum" not in line]
            body = "\n".join([*kept, f"part[g] = {self.result};"])
        return (
            KERNEL.replace("FIELDS", fields).replace("ATTRIBUTE", self.attribute)
            .replace("FILL", render(self.fill)).replace("BODY", body)
            .replace("THREADS", str(self.block[0]))
        )  # fmt: skip

    def launch(self, build: str) -> Launch:
        """The launch; ``given``: how the array of structures is.

        With its fields, or as bytes of a type that the source has, or that nobody knows.
        """
        kernel = Kernel.from_cuda(self.source(), "k", build=build)
        plain = [(name, FIELDS[kind]) for name, kind, bits in self.fields if not bits]
        # Of a structure with bit fields numpy knows nothing.
        known = len(plain) == len(self.fields) and self.given == "fields"
        members, threads = layout(self.fields), self.block[0]
        if known:
            part = unset(threads, np.dtype(plain, align=True))
            part[plain[0][0]] = 1
        else:
            part = unset(threads * len(members), np.uint8)
        out = np.zeros(threads, np.int64)
        args = [out, self.inputs.copy(), part]
        if self.given == "alone":
            ptx, whole = _DEBUG.sub("", kernel.ptx), None
        else:
            ptx, whole = kernel.ptx, kernel
        return Launch(ptx, kernel.entry, self.grid, self.block, args, 0, whole, members)


_DEBUG = re.compile(r"\.section\s+\.debug_\w+\s*\{[^}]*\}")


def layout(fields: list[tuple[str, str, int]]) -> bytes:
    """The bits of a structure that belong to members (Itanium C++ ABI, "POD types")."""
    at, align, members = 0, 1, 0
    for _, kind, width in fields:
        size = 32 if width else 8 * int(FIELDS[kind][1:])
        align = max(align, size)
        count = width or size
        if not width or at // 32 != (at + width - 1) // 32:
            at += -at % size
        members |= (1 << count) - 1 << at
        at += count
    return members.to_bytes((at + -at % align) // 8, "little")


class Writer:
    """Draws the statements."""

    def __init__(self, rng: Draw, fields: list[tuple[str, str, int]], threads: int) -> None:
        self.rng, self.fields, self.threads, self.depth = rng, fields, threads, 0

    def variable(self) -> str:
        return self.rng.choice(["v0", "v1", "v2", "loc[i & 3]", "loc[1]", "loc[(i + t) & 3]"])

    def target(self) -> str:
        return self.rng.choice(
            [self.variable()] * 4 + ["s[t]", "s[t]", "d[t]"] + ["part[g]"] * self.rng.chance(0.3)
        )

    def field(self) -> str:
        return self.rng.choice(self.fields)[0]

    def set(self) -> str:
        where = self.target()
        return f"{where}.{self.field()} = i + {self.rng.randrange(9)};"

    def set_all(self) -> str:
        where = self.target()
        return " ".join(f"{where}.{name} = i + {n};" for n, (name, *_) in enumerate(self.fields))

    def copy(self) -> str:
        one, two = self.target(), self.target()
        way = self.rng.randrange(5)
        if way < 2:
            return f"{one} = {two};"
        if way == 2:
            return f"memcpy(&{one}, &{two}, {self.rng.choice(['sizeof(S)', '1'])});"
        if way == 3:
            return f"{one} = pass({two});"
        return f"{one} = choose(&{two}, &{self.variable()}, i & {self.rng.choice([1, 2])});"

    def use(self) -> str:
        rng, where = self.rng, self.target()
        value = f"{where}.{self.field()}"
        if rng.chance(0.2):
            return f"if ({value} > {rng.randrange(4)}) sum += 3;"
        if rng.chance(0.1):
            return f"sum += loc[(int){value} & 3].{self.field()};"
        if rng.chance(0.2):
            return f"sum += i > {rng.randrange(8)} ? (long long){value} : 1;"
        return f"sum += (long long){value};"

    def scalar(self) -> str:
        test = f"i & {self.rng.choice([1, 2, 4])}"
        test = f"if ({test}) " * self.rng.chance(0.5)
        return f"{test}maybe = t;\nif (i & {self.rng.choice([1, 3])}) sum += maybe;"

    def exchange(self) -> str:
        return (
            f"__syncthreads(); {self.variable()} = s[{self.rng.choice(['t ^ 1', '0', 't'])}"
            f" % {self.threads}]; __syncthreads();"
        )

    def inner(self) -> list[Statement]:
        self.depth += 1
        made = [self.statement(False) for _ in range(self.rng.randrange(1, 4))]
        self.depth -= 1
        return made

    def branch(self) -> Statement:
        test = f"if (i & {self.rng.choice([1, 2, 4])})"
        if self.rng.chance(0.5):
            return Statement(f"{test} {{\n{{0}}\n}}", [self.inner()])
        return Statement(f"{test} {{\n{{0}}\n}} else {{\n{{1}}\n}}", [self.inner(), self.inner()])

    def loop(self) -> Statement:
        return Statement(
            f"for (int n = 0; n < {self.rng.choice(['2', '(i & 3)'])}; n++) {{\n{{0}}\n}}",
            [self.inner()],
        )

    def statement(self, uniform: bool) -> Statement:
        ways: list[tuple[float, Callable[[], str | Statement]]] = [
            (4, self.set), (1, self.set_all), (5, self.copy), (0.8, self.use), (0.4, self.scalar),
            (0.7, lambda: f"fill({self.target()}, i);"),
        ]  # fmt: skip
        if self.depth < 2:
            ways += [(1, self.branch), (0.6, self.loop)]
        if uniform:
            ways.append((1.2, self.exchange))
        made = self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
        return made if isinstance(made, Statement) else Statement(made)


def draw(seed: int) -> Program:
    """The program of a seed."""
    rng = Draw(seed)
    fields = []
    bitwise = rng.chance(0.3)
    for name in NAMES[: rng.randrange(2, 5)]:
        if bitwise and rng.chance(0.7):
            fields.append((name, "unsigned", rng.choice([1, 3, 8, 12])))
        else:
            fields.append((name, rng.choice(list(FIELDS)), 0))
    threads = rng.choice([1, 6, 8, 32])
    writer = Writer(rng, fields, threads)
    fill = [Statement(f"v.{name} = i;") for name, *_ in fields if rng.chance(0.6)]
    body = [writer.statement(True) for _ in range(rng.randrange(4, 14))]
    body += [Statement(writer.use()) for _ in range(rng.randrange(1, 3))]
    inputs = np.array([rng.randrange(8) for _ in range(16)], np.int32)
    attribute = rng.choice(["__noinline__", "__forceinline__"])
    given = rng.choice(["fields", "types", "types", "alone"])
    result = rng.choice(["", "", "v0", "v1", "s[t]", "d[t]"])
    return Program(seed, fields, fill, body, (threads,), inputs, attribute, given, result)

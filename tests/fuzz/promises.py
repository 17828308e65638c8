"""The net of promises: read-only loads and ``__restrict__``, held against sets of elements.

Random kernels of CUDA C++ read, plainly or by ``__ldg``, and write through pointers of which some
are restricted; arguments are whole arrays, views of one, or the same one twice. Which elements each
pointer reads and writes is known, so that the findings of the source build are, too. The optimised
build leaves accesses out: what it finds has to be possible.
"""

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import simulator
from kernels import Kernel, Pointer
from tests.fuzz.report import Difference, Report, seeds

THREADS = (32, 40, 64)
SIZE = 256
"""Elements of each array."""
SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", 7)
FEATURES = {
    "load", "ldg", "call", "store", "atomic", "barrier", "fence", "restrict", "structure",
    "same array", "view", "const", "several blocks", "macro", "walk",
}  # fmt: skip
VERDICTS = {"aliased", "cache", "none"}
HEAD = """\
#define RESTRICT __restrict__
__device__ __noinline__ int get(const int* p, int i) { return __ldg(p + i); }
__device__ __noinline__ int take(const int* p, int i) { return p[i]; }
"""
Found = set[tuple[str, str, int]]
"""Case, names (of a pair of pointers, or an array's number), and how many elements."""


@dataclass(frozen=True)
class Param:
    """A pointer: its array and the element of it that it points to."""

    name: str
    array: int
    offset: int
    restrict: str
    const: bool

    def declared(self) -> str:
        """Its declaration."""
        return f"{'const ' * self.const}int* {self.restrict} {self.name}"


@dataclass(frozen=True)
class Step:
    """What all threads below ``limit`` do, at ``start + stride * thread`` from a pointer."""

    kind: str
    param: int = 0
    start: int = 0
    stride: int = 1
    limit: int = 64

    def elements(self, threads: int) -> set[int]:
        """The elements that it accesses, from where the pointer points to."""
        return {self.start + self.stride * t for t in range(min(threads, self.limit))}


@dataclass
class Program:
    """A kernel and its launch."""

    params: list[Param]
    steps: list[Step]
    structure: bool
    grid: int
    block: int
    features: set[str] = field(default_factory=set)

    def source(self) -> str:
        """The kernel in CUDA C++."""
        members = "; ".join(param.declared() for param in self.params)
        given = "S s" if self.structure else ", ".join(p.declared() for p in self.params)
        lines = [
            f"{HEAD}struct S {{ {members}; int n; }};",
            f'extern "C" __global__ void k({given}, int* out) {{',
            "  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;",
            *(f"  {self._statement(step)}" for step in self.steps),
            "  out[i] = sum;\n}",
        ]
        return "\n".join(lines)

    def _statement(self, step: Step) -> str:
        if step.kind == "barrier":
            return "__syncthreads();"
        if step.kind == "fence":
            return "__threadfence();"
        name = self.params[step.param].name
        name = f"s.{name}" if self.structure else name
        at = f"{step.start} + {step.stride} * i"
        doing = {
            "load": f"sum += {name}[{at}];", "ldg": f"sum += __ldg({name} + ({at}));",
            "call": f"sum += get({name}, {at});", "take": f"sum += take({name}, {at});",
            "store": f"{name}[{at}] = i;", "atomic": f"atomicAdd({name} + ({at}), 1 + i);",
            "walk": f"for (auto p = {name} + i * {step.stride}; p; p = nullptr) "
            f"sum += p[{step.start}];",
        }[step.kind]  # fmt: skip
        return f"if (i < {step.limit}) {{ {doing} }}"

    def accesses(self) -> Iterator[tuple[str, int, set[int]]]:
        """Of each step how it accesses, its pointer, and the elements of the pointer's array."""
        for step in self.steps:
            if step.kind not in ("barrier", "fence"):
                offset = self.params[step.param].offset
                how = {"ldg": "read-only", "call": "read-only", "store": "write",
                       "atomic": "write"}.get(step.kind, "read")  # fmt: skip
                places = {e + offset for e in step.elements(self.grid * self.block)}
                yield how, step.param, places

    def expected(self) -> Found:
        """What is to be found of the source build."""
        done = list(self.accesses())
        found: Found = set()
        explained = set[frozenset[int]]()
        for a, b in itertools.combinations(range(len(self.params)), 2):
            one, other = self.params[a], self.params[b]
            if one.array != other.array or not (one.restrict and other.restrict):
                continue
            both = set[int]().union(*(
                x & y for (how, p, x), (also, q, y) in itertools.product(done, done)
                if (p, q) == (a, b) and "write" in (how, also)
            ))  # fmt: skip
            if both:
                explained.add(frozenset([a, b]))
                of = "s." if self.structure else ""
                found.add(("aliased", f"{of}{one.name} and {of}{other.name}", len(both)))
        for array in {param.array for param in self.params}:
            both = set[int]().union(*(
                x & y for (how, p, x), (also, q, y) in itertools.product(done, done)
                if (how, also) == ("read-only", "write") and frozenset([p, q]) not in explained
                and self.params[p].array == self.params[q].array == array
            ))  # fmt: skip
            if both:
                found.add(("cache", str(array), len(both)))
        return found

    def possible(self) -> set[tuple[str, str]]:
        """What an optimised build may show: reads of what is written, whatever their way."""
        found = {(case, names) for case, names, _ in self.expected() if case == "aliased"}
        done = list(self.accesses())
        for (how, p, x), (also, q, y) in itertools.product(done, done):
            same = self.params[p].array == self.params[q].array
            if how != "write" and also == "write" and same and x & y:
                found.add(("cache", str(self.params[p].array)))
        return found


def draw(seed: int) -> Program:
    """A program of a seed."""
    rng = random.Random(seed)
    count = rng.choice([2, 3, 3, 4])
    restrict = rng.choice(["", "__restrict__", "__restrict", "RESTRICT"])
    params = []
    for number in range(count):
        array = rng.choice([0, 0, 1, number])
        own = restrict if rng.random() < 0.8 else ""
        offset = rng.choice([0, 0, 0, 1, 32, 64])
        params.append(Param("abcd"[number], array, offset, own, rng.random() < 0.4))
    grid, block = rng.choice([1, 1, 2]), rng.choice(THREADS)
    steps = []
    for _ in range(rng.randrange(2, 8)):
        kind = rng.choice(
            ["load", "ldg", "ldg", "call", "take", "walk", "store", "store", "atomic", "barrier",
             "fence"]
        )  # fmt: skip
        able = [
            n for n, param in enumerate(params)
            if not param.const or kind not in ("store", "atomic")
        ]  # fmt: skip
        if kind in ("barrier", "fence") or not able:
            steps.append(Step("barrier" if kind != "fence" else "fence"))
            continue
        steps.append(
            Step(kind, rng.choice(able), rng.choice([0, 0, 1, 31, 40]), rng.choice([0, 1, 1]),
                 rng.choice([1, 16, 64, 128]))
        )  # fmt: skip
    return Program(params, steps, rng.random() < 0.25, grid, block)


def arguments(program: Program) -> list[Any]:
    """What the launch gets; every element is one, so that no sum is zero."""
    arrays = [np.ones(SIZE, np.int32) for _ in range(5)]
    given = [Pointer(arrays[p.array], p.offset) if p.offset else arrays[p.array]
             for p in program.params]  # fmt: skip
    out = np.zeros(SIZE, np.int32)
    return [(*given, 1), out] if program.structure else [*given, out]


def found(program: Program, build: str, schedule: str | int) -> Found:
    """What the simulator finds."""
    kernel = Kernel.from_cuda(program.source(), "k", build=build)
    args = arguments(program)
    run = simulator.launch(
        kernel, program.grid, program.block, args, schedule=schedule, checks={"races"}
    )
    labels = {p.name: str(p.array) for p in reversed(program.params)}
    labels |= {f"s.{name}": array for name, array in labels.items()}
    result: Found = set()
    for hazard in run.hazards:
        if hazard.row.is_race:
            continue
        name = labels.get(hazard.variable, hazard.variable)
        if hazard.case == "aliased":
            name = " and ".join(re.findall(r"`([\w.]+)` \(", hazard.message))
        result.add((hazard.case, name, hazard.locations))
    return result


def wrong(program: Program, schedule: str | int) -> str:
    """What the simulator says otherwise than is expected; empty if nothing."""
    expected = program.expected()
    source = found(program, "source", schedule)
    if source != expected:
        return f"source: {sorted(source)}, not {sorted(expected)}"
    device = {(case, name) for case, name, _ in found(program, "device", schedule)}
    if not device <= program.possible():
        return f"device: {sorted(device)}, of {sorted(program.possible())}"
    return ""


def features(program: Program) -> set[str]:
    """What a program has in it."""
    words = {step.kind for step in program.steps} - {"take"}
    arrays = [param.array for param in program.params]
    for name, there in (
        ("restrict", any(p.restrict for p in program.params)),
        ("macro", any(p.restrict == "RESTRICT" for p in program.params)),
        ("structure", program.structure), ("same array", len(set(arrays)) < len(arrays)),
        ("view", any(p.offset for p in program.params)),
        ("const", any(p.const for p in program.params)), ("several blocks", program.grid > 1),
    ):  # fmt: skip
        words |= {name} if there else set()
    return words


def smaller(program: Program, schedule: str | int) -> Program:
    """The program with steps left out, as long as it stays wrong."""
    for place in reversed(range(len(program.steps))):
        steps = program.steps[:place] + program.steps[place + 1 :]
        less = Program(program.params, steps, program.structure, program.grid, program.block)
        if wrong(less, schedule):
            program = less
    return program


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs and hold the simulator to the sets."""
    report = Report(known={"features": FEATURES, "verdicts": VERDICTS})
    for number in seeds(seconds, seed, count):
        program, schedule = draw(number), SCHEDULES[number % len(SCHEDULES)]
        report.programs += 1
        report.launches += 2
        for feature in features(program):
            report.reach("features", feature)
        for case in {case for case, _, _ in program.expected()} or {"none"}:
            report.reach("verdicts", case)
        what = wrong(program, schedule)
        if what:
            program = smaller(program, schedule)
            text = f"{program.params}\n{program.source()}"
            said = wrong(program, schedule)
            report.differences.append(Difference(number, f"{schedule}: {said}", text))
            if len(report.differences) >= 5:
                break
    return report

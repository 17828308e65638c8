"""Random programs whose barriers are right."""

import random

HEAD = """\
__device__ __noinline__ void arrive(int id, int count) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}
__global__ void k(int* out, const int* rounds) {
    __shared__ int slot[4000];
    int t = threadIdx.x, w = t / 32, b = blockIdx.x, step = 0, wrong = 0;
"""


class Programs:
    """Structured programs of several warps and blocks, in which every barrier is met.

    Before each barrier every warp that takes part says that it has come, and after it those
    that waited look whether the others had.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.warps = self.random.choice([2, 3, 4])
        self.lines: list[str] = []
        self.names = 0

    def source(self) -> str:
        for _ in range(self.random.randint(2, 4)):
            self.part("    ", 2)
        return HEAD + "\n".join(self.lines) + "\n    out[b * blockDim.x + t] = wrong;\n}\n"

    def say(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def part(self, indent: str, depth: int) -> None:
        kinds = [self.whole, self.pair, self.two_places, self.produce, self.count]
        if depth:
            kinds += [self.blocks, self.loop, self.loop]
        kind = self.random.choice(kinds)
        if kind in (self.blocks, self.loop):
            kind(indent, depth - 1)  # type: ignore[call-arg]
        else:
            self.say(indent, "++step;")
            kind(indent)  # type: ignore[call-arg]

    def blocks(self, indent: str, depth: int) -> None:
        self.say(indent, f"if (b % 3 == {self.random.randrange(3)}) {{")
        self.part(indent + "    ", depth)
        self.say(indent, "} else {")
        self.part(indent + "    ", depth)
        self.say(indent, "}")

    def loop(self, indent: str, depth: int) -> None:
        self.names += 1
        name = f"i{self.names}"
        if self.random.random() < 0.5:
            self.say(indent, "#pragma unroll 1")
        limit = self.random.choice(["rounds[b]", "3", "rounds[b] + 1"])
        self.say(indent, f"for (int {name} = 0; {name} < {limit}; ++{name}) {{")
        self.part(indent + "    ", depth)
        self.say(indent, "}")

    def came(self, indent: str) -> None:
        self.say(indent, "if (t % 32 == 0) slot[step * 8 + w] = step;")

    def look(self, indent: str, warps: list[int]) -> None:
        for w in warps:
            self.say(indent, f"wrong += slot[step * 8 + {w}] != step;")

    def whole(self, indent: str) -> None:
        self.came(indent)
        self.say(indent, self.random.choice(["__syncthreads();", "__syncthreads_or(t);"]))
        self.look(indent, list(range(self.warps)))

    def count(self, indent: str) -> None:
        self.say(indent, "wrong += __syncthreads_count(t % 2) != blockDim.x / 2;")

    def subset(self) -> list[int]:
        return sorted(self.random.sample(range(self.warps), self.random.randint(2, self.warps)))

    def sync(self, warps: list[int], number: int) -> str:
        count = 32 * len(warps)
        form = self.random.choice(["bar.sync", "barrier.sync.aligned", "barrier.sync"])
        return f'asm volatile("{form} {number}, {count};" ::: "memory");'

    def among(self, warps: list[int]) -> str:
        return " || ".join(f"w == {w}" for w in warps)

    def pair(self, indent: str) -> None:
        warps, number = self.subset(), self.random.randint(1, 15)
        self.say(indent, f"if ({self.among(warps)}) {{")
        self.came(indent + "    ")
        self.say(indent + "    ", self.sync(warps, number))
        self.look(indent + "    ", warps)
        self.say(indent, "}")
        self.say(indent, "__syncthreads();")

    def two_places(self, indent: str) -> None:
        warps, number = self.subset(), self.random.randint(1, 15)
        self.came(indent)
        self.say(indent, f"if (w == {warps[0]}) {{")
        self.say(indent + "    ", self.sync(warps, number))
        self.look(indent + "    ", warps)
        self.say(indent, f"}} else if ({self.among(warps[1:])}) {{")
        self.say(indent + "    ", self.sync(warps, number))
        self.look(indent + "    ", warps)
        self.say(indent, "}")
        self.say(indent, "__syncthreads();")

    def produce(self, indent: str) -> None:
        warps, number = self.subset(), self.random.randint(1, 15)
        self.came(indent)
        self.say(indent, f"if (w == {warps[0]}) arrive({number}, {32 * len(warps)});")
        self.say(indent, f"else if ({self.among(warps[1:])}) {{")
        self.say(indent + "    ", self.sync(warps, number))
        self.look(indent + "    ", warps)
        self.say(indent, "}")
        self.say(indent, "__syncthreads();")

"""Random programs of locks, flags and messages, whose threads wait for each other."""

import random

WAIT = {
    "atomic": "while (atomicAdd({0}, 0) != {1}) {{}}",
    "volatile": "while (*(volatile int*){0} != {1}) {{}}",
    "acquire": 'do asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"({0}) : "memory");'
    " while (seen != {1});",
    "backoff": "for (int ns = 8; atomicCAS({0}, -1, -1) != {1}; ns = min(2 * ns, 256))"
    " __nanosleep(ns);",
}


SET = {"atomic": "atomicExch({0}, {1});", "volatile": "*(volatile int*){0} = {1};"}


TAKE = {
    "cas": "while (atomicCAS({0}, 0, 1) != 0) {{}}",
    "exchange": "while (atomicExch({0}, 1) != 0) {{}}",
    "test_first": "while (*(volatile int*){0} != 0 || atomicCAS({0}, 0, 1) != 0) {{}}",
}


HEAD = """\
__global__ void k(int* count, int* room, int n) {
    __shared__ int inner[8];
    int t = threadIdx.x, w = t / 32, b = blockIdx.x, i = b * blockDim.x + t, seen = 0;
    if (t < 8) inner[t] = 0;
    __syncthreads();
"""


class Program:
    """One way for threads to wait for each other, and what it leaves behind."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blocks = self.random.choice([1, 2, 3])
        self.threads = self.random.choice([32, 64, 96])
        self.expected: int = 0
        shapes = [self.lock, self.ticket, self.chain, self.ping_pong, self.grid_barrier]
        self.body = self.random.choice(shapes)()
        self.source = HEAD + self.body + "}\n"

    def pick(self, table: dict[str, str], *values: object) -> str:
        return table[self.random.choice(sorted(table))].format(*values)

    def lock(self) -> str:
        """Few or all lanes of each warp take a lock; the others wait for their warp."""
        every = self.random.choice([1, 8, 32])
        self.expected = self.blocks * self.threads // every
        form = self.random.choice(["loop", "done"])
        take, free = self.pick(TAKE, "room"), self.pick(SET, "room", 0)
        if form == "loop":
            body = f"        {take}\n        __threadfence();\n        ++*(volatile int*)count;\n"
            body += f"        __threadfence();\n        {free}\n"
        else:
            body = f"""\
        for (bool done = false; !done;)
            if (atomicCAS(room, 0, 1) == 0) {{
                __threadfence();
                ++*(volatile int*)count;
                __threadfence();
                {free}
                done = true;
            }}
"""
        after = self.random.choice(["", "    __syncwarp();\n", "    __syncthreads();\n"])
        return f"    if (t % {every} == 0) {{\n{body}    }}\n{after}"

    def ticket(self) -> str:
        """Whoever comes first is served first."""
        self.expected = self.blocks * self.threads // 16
        wait = self.pick(WAIT, "(room + 1)", "mine")
        return (
            "    if (t % 16 == 3) {\n"
            "        int mine = atomicAdd(room, 1);\n"
            f"        {wait}\n"
            "        __threadfence();\n        ++*(volatile int*)count;\n        __threadfence();\n"
            f"        {self.pick(SET, '(room + 1)', 'mine + 1')}\n"
            "    }\n"
        )

    def chain(self) -> str:
        """Each waits for its neighbour, above or below; the last one does not."""
        total = self.blocks * self.threads // 32
        self.expected = total
        me = "(i / 32)" if self.random.random() < 0.5 else f"({total - 1} - i / 32)"
        wait = self.pick(WAIT, f"(room + {me} + 1)", 1)
        return (
            "    if (t % 32 == 5) {\n"
            f"        if ({me} != {total - 1}) {wait}\n"
            "        __threadfence();\n        ++*(volatile int*)count;\n        __threadfence();\n"
            f"        {self.pick(SET, f'(room + {me})', 1)}\n"
            "    }\n"
        )

    def ping_pong(self) -> str:
        """Two lanes, of one warp, two warps or two blocks, take turns."""
        rounds = self.random.randint(2, 5)
        self.expected = 2 * rounds
        pairs = ["t == 0", "t == 7"], ["i == 1", f"i == {self.blocks * self.threads - 1}"]
        one, two = self.random.choice(pairs)
        if one == "t == 0":
            one, two = f"b == 0 && {one}", f"b == 0 && {two}"
        body = (
            "    for (int k = 0; k < ROUNDS; ++k)"
            " {{ {wait} ++*(volatile int*)count; __threadfence(); {set} }}\n"
        )
        text = ""
        for mine, condition in enumerate((one, two)):
            line = body.format(
                wait=self.pick(WAIT, "room", f"2 * k + {mine}"),
                set=self.pick(SET, "room", f"2 * k + {mine} + 1"),
            )
            text += f"    if ({condition})\n    {line}"
        return text.replace("ROUNDS", str(rounds)).replace("    if (" + two, "    else if (" + two)

    def grid_barrier(self) -> str:
        """All blocks wait for all, several times."""
        self.expected = 3 * self.blocks
        wait = self.pick(WAIT, "(room + r)", self.blocks)
        return f"""\
    for (int r = 0; r < 3; ++r) {{
        if (t == 0) {{
            atomicAdd(count, 1);
            __threadfence();
            atomicAdd(room + r, 1);
            {wait}
        }}
        __syncthreads();
    }}
"""

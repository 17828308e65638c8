"""Shuffles that read lanes which take no part: an error where the value matters."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

CG = "#include <cooperative_groups.h>\n"  # half a second to compile
HALVE = "for (int d = {}; d; d /= 2) v += __shfl_down_sync(~0u, v, d);"
TILE = "auto g = cooperative_groups::tiled_partition<{}>(cooperative_groups::this_thread_block());"
COALESCED = "if (t % 3 == 0) {{ auto g = cooperative_groups::coalesced_threads(); {} }}"
UP = "shfl.sync.up.b32 %0|p, %2, 4, 0, -1; selp.s32 %1, 1, 0, p;"
SHUFFLES: dict[str, tuple[int, str, tuple[int, int] | None]] = {
    # threads, statements, and who reads from which lane; those that matter stand on line 4
    "scan in an if": (32, "for (int d = 1; d < 32; d *= 2)\nif (t >= d)\n"
                          "v += __shfl_up_sync(~0u, v, d); out[t] = v;", (1, 0)),
    "scan": (48, "for (int d = 1; d < 32; d *= 2) { int x = __shfl_up_sync(~0u, v, d);"
                 "if (t % 32 >= d) v += x; } out[t] = v;", None),
    "not named": (32, "\n\nif (t < 16) out[t] = __shfl_sync(0xffff, v, t + 16);", (0, 16)),
    "clamped": (32, "if (t < 16) out[t] = __shfl_sync(0xffff, v, (t + 8) & 15);", None),
    "named by itself alone": (
        32, "\n\nout[t] = __shfl_sync(t < 16 ? 0xffff : 0xffff0000, v, t ^ 16);", (0, 16)),
    "each half for itself": (
        32, "out[t] = __shfl_sync(t < 16 ? 0xffff : 0xffff0000, v, t ^ 8);", None),
    "no lane": (16, "\n\n" + HALVE.format(16) + "if (t == 0) out[0] = v;", (0, 16)),
    "never gets to lane 0": (16, HALVE.format(8) + "if (t == 0) out[0] = v;", None),
    "gets to others": (16, "\n\n" + HALVE.format(8) + "out[t] = v;", (8, 16)),
    "partial warp": (48, "\n\n" + HALVE.format(16) + "if (t % 32 == 0) out[t] = v;", (32, 16)),
    "partial warp, guarded": (
        48, "for (int d = 16; d; d /= 2) { int x = __shfl_down_sync(~0u, v, d);"
            "if (t + d < 48) v += x; } if (t % 32 == 0) out[t] = v;", None),
    "branch of a lane that does not count": (
        16, "for (int d = 8; d; d /= 2) { int x = __shfl_down_sync(~0u, v, d);"
            "if (x > v) v = x; } if (t == 0) out[0] = v;", None),
    "tiles": (48, TILE.format(16) + "for (int d = 8; d; d /= 2) v += g.shfl_down(v, d);"
                  "if (g.thread_rank() == 0) out[t] = v;", None),
    "past a tile's end": (16, TILE.format(32) + "\n\nout[t] = g.shfl_xor(v, 16);", (0, 16)),
    "coalesced": (48, COALESCED.format("out[t] = v + g.shfl(v, 0) + g.shfl_up(v, 1);"), None),
    "aggregated": (48, "if (v % 3 == 0) { unsigned m = __activemask(); int p = 0, l = __ffs(m) - 1;"
                       "if (t % 32 == l) p = atomicAdd(out, __popc(m));"
                       "out[t + 1] = __shfl_sync(m, p, l) >= 0; }", None),
    "largest": (32, "if (t >= 16) return;\n\n"
                    "out[t] = max(v, __shfl_down_sync(~0u, v, 8));", (8, 16)),
    "smallest": (32, "if (t >= 16) return;\n\n"
                     "out[t] = min(v + 1u, __shfl_down_sync(~0u, v + 1u, 8));", (8, 16)),
    "least float": (32, "if (t >= 16) return;\nfloat f = v;\n"
                        "out[t] = fminf(f, __shfl_down_sync(~0u, f, 8));", (8, 16)),
    "double": (32, "if (t >= 16) return;\ndouble f = v;\n"
                   "out[t] = fmax(f, __shfl_down_sync(~0u, f, 8));", (8, 16)),
    "uniform": (32, "if (t >= 16) return;\n\n"
                    "out[t] = __shfl_down_sync(~0u, n, 8);", (8, 16)),
    "a constant": (32, "if (t >= 16) return;\n\n"
                       "if (__shfl_xor_sync(~0u, v, 16) == 1234567) out[t] = 1;", (0, 16)),
    "the own value": (32, "if (t >= 16) return;\n\n"
                          "if (__shfl_xor_sync(~0u, v, 16) == v) out[t] = 1;", (0, 16)),
    "rounds": (32, "if (t >= 16) return;\n\nint x = __shfl_xor_sync(~0u, v, 16);\n"
                   "for (int i = 0; i < x; ++i) n = n * 3 + in[i % 32]; out[t] = n;", (0, 16)),
    "an address": (32, "if (t >= 16) return;\n\nint x = __shfl_xor_sync(~0u, v % 9, 16);\n"
                       "x = in[x]; if (x == n + 1000000) out[t] = 1;", (0, 16)),
    "predicate": (
        32, 'if (t >= 20) return; int x, ok; asm volatile("{ .reg .pred p;' + UP + '}"'
            ': "=r"(x), "=r"(ok) : "r"(v)); out[t] = ok ? x : v;', None),
    "matrix": (16, 'unsigned x;\n\nasm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"'
                   ': "=r"(x) : "r"(v)); out[t] = x;', (2, 16)),
    "tensor cores": (
        16, "double f = v, d, e;\n\nasm volatile("
            "\"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%2}, {%2, %2};\""
            ': "=d"(d), "=d"(e) : "d"(f)); out[t] = d + e;', (0, 16)),
    "tensor cores of a whole warp": (
        64, "double f = v, d, e; if (t < 32) asm volatile("
            "\"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%2}, {%2, %2};\""
            ': "=d"(d), "=d"(e) : "d"(f)); if (t < 32) out[t] = d + e;', None),
    "votes": (48, "out[t] = __popc(__ballot_sync(~0u, v > 3)) + __all_sync(~0u, v >= 0)"
                  "+ __popc(__match_any_sync(~0u, v % 3)) + __reduce_add_sync(~0u, v);", None),
    "a mask that is wrong says it all": (
        32, "\n\nif (t < 16) { out[t] = __shfl_sync(~0u, v, t + 16); } __syncwarp();", (0, -1)),
}  # fmt: skip


@pytest.mark.slow_cases(
    "a constant", "branch of a...", "coalesced", "never gets to lane 0", "no lane", "partial warp",
    "partial warp, guarded", "past a tile's end", "rounds", "scan in an if", "tiles",
)  # fmt: skip
@pytest.mark.parametrize("name", SHUFFLES)
def test_a_shuffle_from_a_lane_that_takes_no_part(name: str) -> None:
    """It is told where its value comes out: in both builds, and under every schedule."""
    threads, body, expected = SHUFFLES[name]
    source = (
        f"{CG if 'cooperative' in body else chr(10)}"
        "__global__ void k(int* out, const int* in, int n) {"
        f"int t = threadIdx.x, v = in[t];{body} }}"
    )
    reports = set()
    for build in ("device", "source"):
        kernel = Kernel.from_cuda(source, "k", build=build)
        for schedule in ("lockstep", "warps", "reverse", 1):
            args = [np.zeros(64, np.int32), np.arange(64, dtype=np.int32) * 7919 % 100, 3]
            run = simulator.launch(kernel, 1, threads, args, schedule=schedule)
            reports.add(tuple((h.kind, h.message, h.lines, h.thread, h.count) for h in run.hazards))
    (found,) = reports
    if not expected:
        assert found == ()
        return
    ((kind, message, lines, thread, _),) = found
    reader, lane = expected
    assert (lines, thread) == ((4,), (reader, 0, 0))
    assert kind == ("bad-mask" if lane < 0 else "uninitialised")
    assert lane < 0 or message.startswith(f"lane {reader % 32} reads lane {lane}, which ")

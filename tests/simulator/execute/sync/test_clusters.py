"""Clusters of blocks: shape, distributed shared memory, barrier, and what goes wrong there."""

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel
from kernels.errors import LaunchError, PtxError
from tests.simulator.isa.harness import MACHINES
from tilescope.cli.main import main

pytestmark = pytest.mark.slow


OPCODES = {"mapa", "getctarank"}
SPECIALS = [
    *(f"%{name}.{axis}" for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
      for axis in "xyz"), "%cluster_ctarank", "%cluster_nctarank",
]  # fmt: skip


def ptx(body: str, directives: str = "", target: str = "sm_90") -> Kernel:
    """A kernel over one array of 32-bit words."""
    return Kernel.from_ptx(
        f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
        f"{directives}\n{{ .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<4>;\n"
        f".shared .align 8 .b8 s[512];\n{body}\nret; }}",
        "k",
    )


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((4, 1, 1), (2, 1, 1)),
        ((2, 4, 2), (1, 2, 2)),
        ((3, 6, 4), (3, 2, 1)),
        ((16, 1, 1), (8, 1, 1)),
    ],
)
@pytest.mark.parametrize("from_directive", [True, False])
def test_special_registers(
    grid: tuple[int, ...], cluster: tuple[int, ...], from_directive: bool
) -> None:
    count = len(SPECIALS)
    lines = ["ld.param.u64 %rd1, [p];", "mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y;"]
    lines += ["mov.u32 %r3, %ctaid.y; mad.lo.u32 %r1, %r1, %r2, %r3; mov.u32 %r2, %nctaid.x;"]
    lines += [
        f"mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r1, %r2, %r3; mul.lo.u32 %r1, %r1, {count * 4};"
    ]
    lines += ["cvt.u64.u32 %rd2, %r1; add.u64 %rd1, %rd1, %rd2;"]
    for i, name in enumerate(SPECIALS):
        lines.append(f"mov.u32 %r4, {name}; st.global.u32 [%rd1+{4 * i}], %r4;")
    asked = ",".join(map(str, cluster))
    k = ptx("\n".join(lines), f".explicitcluster .reqnctapercluster {asked}" * from_directive)
    outs = [np.zeros((*grid[::-1], count), np.int32) for _ in MACHINES]
    for machine, out in zip(MACHINES, outs, strict=True):
        run = machine.launch(k, grid, 1, [out], cluster=None if from_directive else cluster)
        if isinstance(run, simulator.Run):
            assert (run.cluster, run.hazards) == (cluster, [])
    for out, z, y, x in itertools.product(outs, *map(range, grid[::-1])):
        at = (x, y, z)
        inside = [n % of for n, of in zip(at, cluster, strict=True)]
        want = [
            *(n // of for n, of in zip(at, cluster, strict=True)),
            *(n // of for n, of in zip(grid, cluster, strict=True)), *inside, *cluster,
            inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2]),
            cluster[0] * cluster[1] * cluster[2],
        ]  # fmt: skip
        assert out[z, y, x].tolist() == want


EXPLICIT = """
    ld.param.u64 %rd1, [p]; mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1;
    st.global.u32 [%rd1], %r1;
"""


@pytest.mark.parametrize(
    ("directives", "cluster", "grid", "says"),
    [
        ("", None, 2, 0), ("", 1, 2, 1), ("", 2, 2, 1), (".reqnctapercluster 2, 1, 1", None, 2, 1),
        (".reqnctapercluster 2", (2, 1), 2, 1), (".maxclusterrank 4", None, 2, 0),
        (".maxclusterrank 4", 4, 4, 1),
        (".minnctapersm 2 .maxntid 128, 1, 1", None, 2, 0),
        (".explicitcluster", 2, 2, 1),
        (".explicitcluster", None, 2, "clusters whose shape the launch has to say"),
        (".maxclusterrank 4", 8, 8, "compiled for 4 at most"),
        (".reqnctapercluster 2, 1, 1", 4, 4, "requires a cluster of 2x1x1"),
        (".reqnctapercluster 2, 1, 1", None, 3, "no multiple of its clusters of 2x1x1"),
        ("", 2, 5, "no multiple"), ("", (1, 2), 4, "no multiple"),
        ("", 16, 16, "16 blocks in a cluster"),
        ("", 0, 4, "cluster must be one to three positive"),
    ],
)  # fmt: skip
def test_shape(directives: str, cluster: int | None, grid: int, says: int | str) -> None:
    k, out = ptx(EXPLICIT, directives), np.full(1, -1, np.int32)
    if isinstance(says, str):
        with pytest.raises(LaunchError, match=says):
            simulator.launch(k, grid, 32, [out], cluster=cluster)
        return
    for machine in MACHINES:
        out[:] = -1
        machine.launch(k, grid, 32, [out], cluster=cluster)
        assert out[0] == says


def test_a_grid_of_clusters_is_refused() -> None:
    k = ptx("", ".reqntid 32 .reqnctapercluster 2 .blocksareclusters")
    with pytest.raises(PtxError, match=r"\.blocksareclusters.*count blocks.*PTX line"):
        simulator.launch(k, 2, 32, [np.zeros(1, np.int32)])


@pytest.mark.parametrize(
    "code", ["ld.shared::cluster.u32 %r1, [%r2];", "mapa.shared::cluster.u32 %r1, %r2, 0;",
             "fence.acq_rel.cluster;", "barrier.cluster.arrive;"],
)  # fmt: skip
def test_clusters_need_their_target(code: str) -> None:
    with pytest.raises(PtxError, match="for targets sm_90 and later only"):
        simulator.launch(ptx(code, target="sm_80"), 1, 32, [np.zeros(1, np.int32)])


START = """
    #include <cooperative_groups.h>
    #include <cuda_fp16.h>
    namespace cg = cooperative_groups;
    #define ARRIVE(how) asm volatile("barrier.cluster.arrive" how ";" ::: "memory")
    #define WAIT asm volatile("barrier.cluster.wait;" ::: "memory")
    extern "C" __global__ void k(int* out) {
      __shared__ __align__(16) int s[64]; __shared__ int q[64];
      auto cluster = cg::this_cluster();
      int t = threadIdx.x, r = cluster.block_rank(), n = cluster.num_blocks(), b = blockIdx.x;
      int* next = cluster.map_shared_rank(s, (r + 1) % n);
      int* there = cluster.map_shared_rank(q, (r + 1) % n);
"""
READ = "out[b * 64 + t] = next[63 - t];"
SET = "s[t] = b * 100 + t;"
SYNC = "cluster.sync();"
FOUND = {
    "right": (SET + SYNC + READ + SYNC, []),
    "own": (SET + "__syncthreads(); out[b * 64 + t] = cluster.map_shared_rank(s, r)[63 - t];", []),
    "leaves": (SET + SYNC + READ, ["exited-block"]),
    "writes late": (SYNC + "next[t] = t;" + SYNC + "out[b * 64 + t] = s[t]; there[t] = 1;",
                    ["exited-block"]),
    "one stays": (SET + SYNC + "if (t == 0) " + READ + " ARRIVE(); WAIT;", []),
    "no first barrier": (SET + "__syncthreads();" + READ + SYNC, ["raw-race"]),
    "overtaken": (SET + SYNC + READ + "s[t] = 0;" + SYNC, ["war-race"]),
    "two write": (SYNC + "if (t == 0) next[0] = r; if (t == 0) s[0] = 7;" + SYNC
                  + "out[b * 64 + t] = s[0];", ["waw-race"]),
    "relaxed": (SET + "ARRIVE(\".relaxed\"); WAIT;" + READ + SYNC, ["raw-race"]),
    "fenced": (SET + "asm volatile(\"fence.acq_rel.cluster;\" ::: \"memory\");"
               "ARRIVE(\".relaxed\"); WAIT;" + READ + SYNC, []),
    "fence of the block": (SET + "asm volatile(\"fence.acq_rel.cta;\" ::: \"memory\");"
                           "ARRIVE(\".relaxed\"); WAIT;" + READ + SYNC, ["raw-race"]),
    "one releases for all": (
        SET + "__syncthreads(); if (t < 32) ARRIVE(); else ARRIVE(\".relaxed\"); WAIT;"
        + READ + SYNC, []),
    "between": (SET + "ARRIVE(); q[t] = t; WAIT; out[b * 64 + t] = next[t];" + SYNC, []),
    "too late": (SET + "ARRIVE(); q[t] = t; WAIT; out[b * 64 + t] = there[t];" + SYNC,
                 ["raw-race"]),
    "a barrier of the block too": (SET + SYNC + "out[b * 64 + t] = s[63 - t];" + SYNC, []),
    "only arrives": (SET + "ARRIVE(); out[b * 64 + t] = s[63 - t]; WAIT;", ["raw-race"]),
    "atomics": (
        "s[t] = 0;" + SYNC + "atomicAdd(next + t % 7, 1); atomicAdd(s + t % 7, 1);" + SYNC
        + "out[b * 64 + t] = s[t];", []),
    "atomics of the block": (
        "s[t] = 0;" + SYNC + "atomicAdd_block(next, 1); atomicAdd_block(s, 1);" + SYNC
        + "out[b * 64 + t] = s[t];", ["waw-race"]),
    "atomics in steps": (
        "s[t] = 0;" + SYNC + "atomicMax((long long*)next, (long long)t);" + SYNC
        + "out[b * 64 + t] = s[t];", ["waw-race"] * 2),
    "atomics in steps, and whole": (
        "s[t] = 0;" + SYNC + "if (t == r) atomicOr((unsigned long long*)cluster.map_shared_rank"
        "(s, 0), 1ull << t);" + SYNC + "out[b * 64 + t] = s[t];", ["waw-race"]),
    "atomics in steps of its own": (
        "s[t] = 0;" + SYNC + "atomicMax((long long*)s, (long long)t); if (t == 0)"
        "atomicXor((unsigned long long*)next + 1, 5ull);" + SYNC + "out[b * 64 + t] = s[t];", []),
    "atomics that are whole": (
        "s[t] = 0;" + SYNC + "auto w = (unsigned long long*)next; atomicMax(next, t);"
        "atomicAdd(w + 1, 1ull); atomicExch(w + 2, 1ull); atomicCAS(w + 3, 0ull, 1ull);" + SYNC
        + "out[b * 64 + t] = s[t];", []),
    "a pair of halves added": (
        "s[t] = 0;" + SYNC + "atomicAdd((__half2*)s, __half2(1, 1)); if (t == 5)"
        "atomicAdd((__half2*)next + 1, __half2(1, 1));" + SYNC + "out[b * 64 + t] = s[t];",
        ["address-space"]),
    "halves added": (
        "s[t] = 0;" + SYNC + "atomicAdd((__half*)next, __half(1)); atomicAdd((float*)next + 1, 1);"
        + SYNC + "out[b * 64 + t] = s[t];", []),
    "unset": (SYNC + "if (t == 3) next[3] = 1;" + SYNC + "out[b * 64 + t] = s[t] * (t > 1);" ,
              ["uninitialised"]),
    "flag": (
        "if (t == 0) q[0] = 0;" + SYNC + "if (t == 0) { next[0] = b;"
        "asm volatile(\"fence.acq_rel.cluster;\" ::: \"memory\"); atomicExch(there, 1);"
        "while (atomicAdd(q, 0) == 0); asm volatile(\"fence.acq_rel.cluster;\" ::: \"memory\");"
        "out[b * 64] = s[0]; }" + SYNC, []),
    "flag without a fence": (
        "if (t == 0) q[0] = 0;" + SYNC + "if (t == 0) { next[0] = b; atomicExch(there, 1);"
        "while (atomicAdd(q, 0) == 0); out[b * 64] = s[0]; }" + SYNC, ["raw-race"]),
    "flag of the block": (
        "if (t == 0) q[0] = 0;" + SYNC + "if (t == 0) { next[0] = b;"
        "asm volatile(\"fence.acq_rel.cta;\" ::: \"memory\"); atomicExch(there, 1);"
        "while (atomicAdd(q, 0) == 0); asm volatile(\"fence.acq_rel.cta;\" ::: \"memory\");"
        "out[b * 64] = s[0]; }" + SYNC, ["raw-race"]),
    "no arrival": ("WAIT; out[b * 64 + t] = 1;", ["barrier-divergence"]),
    "two arrivals": ("ARRIVE(); ARRIVE(); WAIT; out[b * 64 + t] = 1;", ["barrier-divergence"]),
    "some have left": ("if (r == 0) return;" + SYNC, ["barrier-divergence"]),
    "one block elsewhere": (
        "if (r) " + SYNC + " else if (t < 32) asm volatile(\"bar.sync 1, 64;\");",
        ["deadlock"] * 2),
    "half a warp": (
        "if (t % 2) asm volatile(\"barrier.cluster.arrive.aligned;\");"
        "else asm volatile(\"barrier.cluster.arrive.aligned; \"); WAIT;", ["barrier-divergence"]),
    "beyond": (SET + SYNC + "out[b * 64 + t] = cluster.map_shared_rank(s, n)[t];" + SYNC,
               ["out-of-bounds"]),
    "as its own": (SET + SYNC + "unsigned a = (unsigned)__cvta_generic_to_shared(next);"
                   "asm volatile(\"ld.shared.u32 %0, [%1];\" : \"=r\"(q[t]) : \"r\"(a));" + SYNC,
                   ["address-space"]),
    "an address from the other": (
        SET + "__shared__ int* from; if (t == 0) *cluster.map_shared_rank(&from, (r + 1) % n) = s;"
        + SYNC + "out[b * 64 + t] = from[t] + (from == cluster.map_shared_rank(s, (r + 1) % n));"
        + SYNC, []),
    "past its end": (SET + "q[t] = 0;" + SYNC + "out[b * 64 + t] = next[t + 100];" + SYNC,
                     ["out-of-bounds"]),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["lockstep", "warps", 1])
@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str, schedule: str | int) -> None:
    body, kinds = FOUND[name]
    k, out = Kernel.from_cuda(START + body + "}", "k"), np.zeros(256, np.int32)
    run = simulator.launch(k, 4, 64, [out], cluster=2, schedule=schedule)
    assert [hazard.kind for hazard in run.hazards] == kinds, "\n".join(map(str, run.hazards))
    for machine in MACHINES[1:] if not kinds and schedule == "lockstep" else ():
        theirs = np.zeros_like(out)
        machine.launch(k, 4, 64, [theirs], cluster=2)
        assert theirs.tolist() == out.tolist()


@pytest.mark.parametrize("build", ["device", "source"])
def test_distributed_shared_memory(build: str) -> None:
    """Loads, stores and atomics by rank; ``query_shared_rank`` says whose it is."""
    body = SET + "q[t] = 0;" + SYNC + "atomicAdd(there + t / 2, t);" + SYNC
    body += (
        "out[b * 64 + t] = next[63 - t] + q[t] * 1000 + cluster.query_shared_rank(next) * 1000000;"
    )
    k, out = (
        Kernel.from_cuda(START + body + SYNC + "}", "k", build=build),
        np.zeros((8, 64), np.int32),
    )
    run = simulator.launch(k, 8, 64, [out], cluster=4)
    for machine in MACHINES[1:]:
        theirs = np.zeros_like(out)
        machine.launch(k, 8, 64, [theirs], cluster=4)
        assert theirs.tolist() == out.tolist()
    block, t = np.indices(out.shape)
    following = block // 4 * 4 + (block + 1) % 4
    added = np.where(t < 32, 4 * t + 1, 0)
    assert (out == following * 100 + 63 - t + added * 1000 + following % 4 * 1000000).all()
    assert run.hazards == []
    assert run.counters.cluster_load.requests == 8 * 2
    assert run.counters.cluster_load.bytes == out.nbytes
    assert run.counters.cluster_atomic.accesses == out.size


@pytest.mark.parametrize("kind", ["u32", "u64"])
def test_addresses(kind: str) -> None:
    """An address of the block's own by its number is that address again, and in ``shared::cta``."""
    reg = "r" if kind == "u32" else "rd"
    k = ptx(f"""
        ld.param.u64 %rd1, [p]; mov.{kind} %{reg}5, s; mov.u32 %r9, %cluster_ctarank;
        mapa.shared::cluster.{kind} %{reg}6, %{reg}5, %r9; setp.eq.{kind} %p1, %{reg}5, %{reg}6;
        selp.u32 %r1, 1, 0, %p1; mapa.shared::cluster.{kind} %{reg}7, s, 1;
        getctarank.shared::cluster.{kind} %r2, %{reg}7; cvta.shared.u64 %rd8, s;
        mapa.u64 %rd3, %rd8, 1; isspacep.shared::cta %p2, %rd3; isspacep.shared::cluster %p3, %rd3;
        selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 1, 0, %p3; getctarank.u64 %r10, %rd8;
        mov.u32 %r11, %ctaid.x; mul.wide.u32 %rd2, %r11, 20; add.u64 %rd1, %rd1, %rd2;
        st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.u32 [%rd1+8], %r3;
        st.global.u32 [%rd1+12], %r4; st.global.u32 [%rd1+16], %r10;
    """)
    for machine in MACHINES:
        out = np.zeros((2, 5), np.int32)
        machine.launch(k, 2, 1, [out], cluster=2)
        assert out.tolist() == [[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]]


BARRIER = """
    __shared__ __align__(16) int data[64];
    __shared__ __align__(8) unsigned long long bar;
    #define AT(p) ((unsigned)__cvta_generic_to_shared(p))
    unsigned mine = AT(&bar), beyond, into;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(beyond) : "r"(mine), "r"((r + 1) % n));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(into) : "r"(AT(data)), "r"((r + 1) % n));
    #define INIT(count) if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" \\
        "fence.mbarrier_init.release.cluster;" :: "r"(mine), "r"(count) : "memory"); cluster.sync();
    #define EXPECT(bytes) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" \\
        :: "r"(mine), "r"(bytes) : "memory");
    #define DONE(how) { unsigned done = 0; while (!done) asm volatile("{ .reg .pred p; " \\
        "mbarrier.try_wait.parity" how ".shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" \\
        : "=r"(done) : "r"(mine) : "memory"); }
    #define TELL(how) asm volatile("mbarrier.arrive" how ".shared::cluster.b64 _, [%0];" \\
        :: "r"(beyond) : "memory");
    #define SEND ; asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 " \\
        "[%0], %1, [%2];" :: "r"(into + 4 * t), "r"(b * 100 + t), "r"(beyond) : "memory");
    #define ADD asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx" \\
        "::bytes.add.u32 [%0], %1, [%2];" :: "r"(into + 4 * (t / 2)), "r"(t), "r"(beyond));
    #define COPY(space, more) asm volatile("cp.async.bulk.shared::cluster." space \\
        ".mbarrier::complete_tx::bytes" more
"""
WAIT = 'DONE(".acquire.cluster")'
GET = "out[b * 64 + t] = data[t];"
FENCED = 'asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();'
ACROSS = (
    'if (t == 0) COPY("shared::cta", "") " [%0], [%1], 256, [%2];" :: "r"(into), "r"(AT(s)), '
    '"r"(beyond) : "memory");'
)
TO_ALL = (
    'if (r == 0 && t == 0) COPY("global", ".multicast::cluster") " [%0], [%1], 256, [%2], %3;" :: '
    '"r"(AT(data)), "l"(out + 128), "r"(mine), "h"((short)3) : "memory");'
)
LEFT, SUMS, COPIED = range(3)
FAR: dict[str, tuple[str, int, list[str]]] = {
    "sent": ("INIT(1) if (t == 0) EXPECT(256) SEND " + WAIT + GET, LEFT, []),
    "sent and not waited for": (
        "data[t] = 0; INIT(1) if (t == 0) EXPECT(256) SEND " + GET + WAIT, LEFT, ["raw-race"]),
    "sent to who may have left": ("INIT(1) if (t == 0) EXPECT(256) SEND;", LEFT, ["exited-block"]),
    "told": ('INIT(64) next[t] = b * 100 + t; TELL(".release.cluster")' + WAIT
             + "out[b * 64 + t] = s[t];", LEFT, []),
    "told by default": ("INIT(64) next[t] = b * 100 + t; TELL(\"\") DONE(\"\")"
                        + "out[b * 64 + t] = s[t];", LEFT, []),
    "told, and asked twice by some": (
        'INIT(64) next[t] = b * 100 + t; TELL(".release.cluster") if (t < 31)' + WAIT + WAIT
        + "out[b * 64 + t] = s[t];", LEFT, []),
    "sent, and never enough": ("INIT(2) if (t == 0) EXPECT(256) SEND " + WAIT, -1, ["livelock"]),
    "told one for all": (
        'INIT(1) next[t] = b * 100 + t; __syncthreads(); if (t == 5) TELL(".release.cluster")'
        "if (t == 9) " + WAIT + " __syncthreads(); out[b * 64 + t] = s[t];", LEFT, []),
    "told one, not the others": (
        'INIT(1) next[t] = b * 100 + t; __syncthreads(); if (t == 5) TELL(".release.cluster")'
        "if (t == 9) " + WAIT + " out[b * 64 + t] = s[t];" + SYNC, LEFT, ["raw-race"]),
    "told within the block": ('INIT(64) next[t] = b * 100 + t; TELL(".release.cta")' + WAIT
                              + "out[b * 64 + t] = s[t];" + SYNC, LEFT, ["raw-race"]),
    "told before": ('s[t] = 0; INIT(64) TELL(".release.cluster") next[t] = b;' + WAIT
                    + "out[b * 64 + t] = s[t];" + SYNC, -1, ["raw-race"]),
    "copied": (SET + FENCED + "INIT(1) if (t == 0) EXPECT(256)" + ACROSS + WAIT + GET, LEFT, []),
    "copied and not waited for": (
        SET + FENCED + "data[t] = 0; INIT(1) if (t == 0) EXPECT(256)" + ACROSS + GET + WAIT, -1,
        ["raw-race"]),
    "copied, not fenced": (SET + "INIT(1) if (t == 0) EXPECT(256)" + ACROSS + WAIT + GET, LEFT,
                           ["raw-race"]),
    "to all": ("INIT(1) if (t == 0) EXPECT(256)" + TO_ALL + WAIT + "out[b * 64 + t] = data[t];",
               COPIED, []),
    "added": ("data[t] = 0; INIT(1) if (t == 0) EXPECT(256) ADD " + WAIT + GET, SUMS, []),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["lockstep", "warps"])
@pytest.mark.parametrize("name", FAR)
def test_what_arrives_from_afar(name: str, schedule: str) -> None:
    """``mbarrier`` of another block, ``st.async``, ``red.async``, copies in bulk, multicast."""
    body, expected, kinds = FAR[name]
    k = Kernel.from_cuda(START + BARRIER + body + "}", "k")
    out = np.concatenate([np.full(128, -1), np.arange(64)]).astype(np.int32)
    run = simulator.launch(k, 2, 64, [out], cluster=2, schedule=schedule)
    assert {h.kind for h in run.hazards} == set(kinds), "\n".join(map(str, run.hazards))
    for machine in MACHINES[1:] if not kinds and schedule == "lockstep" else ():
        theirs = np.concatenate([np.full(128, -1), np.arange(64)]).astype(np.int32)
        machine.launch(k, 2, 64, [theirs], cluster=2)
        assert theirs.tolist() == out.tolist()
    block, t = np.indices((2, 64))
    want = {
        LEFT: (1 - block) * 100 + t, COPIED: t, SUMS: np.where(t < 32, 4 * t + 1, 0),
    }.get(expected)  # fmt: skip
    if want is not None and not kinds:
        assert (out[:128].reshape(2, 64) == want).all()


@pytest.mark.parametrize(
    ("name", "line"), [("missing_cluster_barrier", 12), ("missing_last_cluster_barrier", 30)]
)
def test_fixes(name: str, line: int) -> None:
    """A barrier of the cluster, tried and proved, where the source names ``this_cluster``."""
    shown = CliRunner().invoke(main, ["check", f"faulty_{name}", "--json", "-"])
    (hazard,) = json.loads(shown.stdout)["hazards"]
    assert hazard["fix"]["text"] == "cooperative_groups::this_cluster().sync();"
    assert (hazard["fix"]["line"], hazard["fix"]["left"]) == (line, 0)

"""Copies of tensors in bulk that do more: reductions, NaN outside of an array, images.

On every machine there is; the simulator is held to plain loops, a GPU to both."""

import itertools
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, TensorMap
from kernels.arguments.tensor_map import TYPES
from tests.simulator.isa.harness import MACHINES
from tests.simulator.memory.test_tensor_maps import swizzled

OPCODES = {"cp"}
HEAD = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128],
                  .param .align 4 .b8 at[32], .param .u32 bytes)
{
    .reg .pred %p, %q;
    .reg .b16 %h<3>;
    .reg .b32 %t, %s, %m, %v, %w, %n, %c<5>, %x<4>;
    .reg .b64 %o, %i, %f, %at;
    .shared .align 1024 .b8 buffer[8192];
    .shared .align 8 .b64 full;
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [out];
    ld.param.u64 %i, [in];
    mov.b64 %f, map;
    cvta.param.u64 %f, %f;
    ld.param.u32 %n, [bytes];
    ld.param.b32 %c0, [at];
    ld.param.b32 %c1, [at+4];
    ld.param.b32 %c2, [at+8];
    ld.param.b32 %c3, [at+12];
    ld.param.b32 %c4, [at+16];
    ld.param.b16 %h0, [at+20];
    ld.param.b16 %h1, [at+22];
    ld.param.b16 %h2, [at+24];
    mov.u32 %s, buffer;
    mov.u32 %m, full;
    setp.eq.u32 %p, %t, 0;
"""
LOAD = """
    @%p mbarrier.init.shared.b64 [%m], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%p bra wait;
    mbarrier.arrive.expect_tx.shared.b64 _, [%m], %n;
    INSTRUCTION
wait:
    mbarrier.try_wait.parity.shared.b64 %q, [%m], 0;
    @!%q bra wait;
    mov.u32 %v, %t;
copy:
    shl.b32 %w, %v, 4;
    setp.ge.u32 %q, %w, %n;
    @%q ret;
    mad.lo.u32 %w, %v, 16, %s;
    ld.shared.v4.u32 {%x0, %x1, %x2, %x3}, [%w];
    mad.wide.u32 %at, %v, 16, %o;
    st.global.v4.u32 [%at], {%x0, %x1, %x2, %x3};
    add.u32 %v, %v, 32;
    bra copy;
}
"""
STORE = """
    mov.u32 %v, %t;
copy:
    shl.b32 %w, %v, 4;
    setp.ge.u32 %q, %w, %n;
    @%q bra copied;
    mad.wide.u32 %at, %v, 16, %i;
    ld.global.v4.u32 {%x0, %x1, %x2, %x3}, [%at];
    mad.lo.u32 %w, %v, 16, %s;
    st.shared.v4.u32 [%w], {%x0, %x1, %x2, %x3};
    add.u32 %v, %v, 32;
    bra copy;
copied:
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%p ret;
    INSTRUCTION
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


def kernel(instruction: str) -> Kernel:
    body = LOAD if "mbarrier::complete_tx" in instruction else STORE
    return Kernel.from_ptx(HEAD + body.replace("INSTRUCTION", instruction), "k")


def load(map_: TensorMap, where: list[int], offsets: list[int], machine: Any) -> np.ndarray:
    """What a load of a map brings, in the order of shared memory; ``where`` as PTX has it."""
    rank = map_.array.ndim
    places = ", ".join(f"%c{i}" for i in range(rank))
    more = f", {{{', '.join(f'%h{i}' for i in range(rank - 2))}}}" if map_.corners else ""
    mode = "im2col" if map_.corners else "tile"
    text = f"""cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}
        .mbarrier::complete_tx::bytes [%s], [%f, {{{places}}}], [%m]{more};"""
    counts = [-(-n // s) for n, s in zip(map_.box, map_.steps, strict=False)]
    count = int(np.prod(map_.box if map_.corners else counts)) * map_.array.itemsize
    out = np.zeros(count, np.uint8)
    at = np.array([*where, *[0] * (5 - rank)], np.int32).tobytes()
    at += np.array([*offsets, *[0] * (3 - len(offsets))], np.uint16).tobytes()
    run = machine.launch(kernel(text), 1, 32, [out, out[:1], map_, at.ljust(32, b"\0"), count])
    assert getattr(run, "hazards", []) == []
    return out


def store(how: str, map_: TensorMap, where: list[int], sent: np.ndarray, machine: Any) -> Any:
    """Send a box to a map."""
    rank = map_.array.ndim
    places = ", ".join(f"%c{i}" for i in range(rank))
    mode = "im2col_no_offs" if map_.corners else "tile"
    text = f"cp.{'reduce.' * bool(how)}async.bulk.tensor.{rank}d.global.shared::cta{how}.{mode}"
    text += f".bulk_group [%f, {{{places}}}], [%s];"
    at = np.array([*where, *[0] * (8 - rank)], np.int32).tobytes()
    raw = sent.reshape(-1).view(np.uint8)
    return machine.launch(kernel(text), 1, 32, [np.zeros(1, np.uint8), raw, map_, at, raw.nbytes])


def numbers(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Bits of many sorts: any, and for floating numbers such that meet their edges."""
    size = TYPES[kind]
    found = rng.integers(0, 256, count * size, dtype=np.uint8).view(f"u{size}")
    if "f" in kind:
        exponent, whole = {"f16": (10, 31), "bf16": (7, 255), "f32": (23, 255),
                           "f64": (52, 2047)}[kind]  # fmt: skip
        edges = [0, 1, (1 << exponent) - 1, 1 << exponent, whole // 2 << exponent,
                 (whole - 1) << exponent, whole << exponent, (whole << exponent) + 1]  # fmt: skip
        edges += [edge | 1 << (8 * size - 1) for edge in edges]
        few = rng.choice(np.array(edges, f"u{size}"), count)
        near = (found & found.dtype.type((4 << exponent) - 1)) + found.dtype.type(
            whole // 2 << exponent
        )
        found = np.where(rng.integers(0, 3, count) == 0, few, np.where(found & 1, near, found))
    return found


REDUCTIONS = [
    (how, kind)
    for how, kinds in {
        ".add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
        ".min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        ".max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        ".inc": ("u32",), ".dec": ("u32",), ".and": ("u32", "u64"), ".or": ("u32",),
        ".xor": ("u64",),
    }.items()
    for kind in kinds
]  # fmt: skip


@pytest.mark.parametrize(("how", "kind"), REDUCTIONS, ids=lambda word: word.strip("."))
def test_a_box_is_reduced_as_each_element_is(how: str, kind: str) -> None:
    """Held to the same numbers by ``red`` (f32: shared memory's, which keeps subnormals)."""
    rng = np.random.default_rng(3)
    sent, start = numbers(kind, 512, rng), numbers(kind, 1024, rng)
    found = []
    for machine in MACHINES:
        array = start.copy().reshape(32, 32)
        run = store(how, TensorMap(array, (16, 32), type=kind), [16, 8], sent, machine)
        assert getattr(run, "hazards", []) == []
        found.append(array)
    box, into = sent.reshape(16, 32)[:, :16], start.copy().reshape(32, 32)
    into[8:24, 16:] = by_element(how, kind, into[8:24, 16:].copy(), box)
    for array in found:
        np.testing.assert_array_equal(array, into)


def by_element(how: str, kind: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Each element by an ``atom`` of its own, or by the operation that there is for halves."""
    half, size = kind in ("f16", "bf16"), TYPES[kind]
    bits = f"b{kind[1:]}" if how in (".and", ".or", ".xor") else kind
    shared = "ld.global.b32 %o, [%a]; st.shared.b32 [%s], %o; atom.shared.add.f32 %o, [%s], %v;"
    code = f"atom.global{how}{'.noftz' * half}.{bits} %o, [%a], %v;"
    if kind == "f32":
        code = f"{shared} ld.shared.b32 %o, [%s]; st.global.b32 [%a], %o;"
    elif half and how != ".add":
        code = f"ld.global.b16 %o, [%a]; {how[1:]}.{kind} %o, %o, %v; st.global.b16 [%a], %o;"
    text = f"""
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 a, .param .u64 b)
    {{
        .reg .b32 %t; .reg .b64 %a, %b, %s, %m; .reg .b{8 * size} %v, %o;
        .shared .align 8 .b8 m[4096];
        mov.u32 %t, %tid.x; ld.param.u64 %a, [a]; ld.param.u64 %b, [b];
        mad.wide.u32 %a, %t, {size}, %a; mad.wide.u32 %b, %t, {size}, %b;
        mov.b64 %m, m; mad.wide.u32 %s, %t, {size}, %m;
        ld.global.b{8 * size} %v, [%b];
        {code}
        ret;
    }}
    """
    left, right = old.reshape(-1).copy(), np.ascontiguousarray(new).reshape(-1)
    run = simulator.launch(Kernel.from_ptx(text, "k"), 1, left.size, [left, right])
    assert run.hazards == []
    return left.reshape(old.shape)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_what_lies_outside_is_nan_if_the_map_says_so(kind: str) -> None:
    size = TYPES[kind]
    array = np.random.default_rng(4).integers(0, 256, (8, 32 * size), np.uint8).view(f"u{size}")
    nan = np.array(0x7FF77FF77FF77FF7 & (1 << 8 * size) - 1, f"u{size}")
    for machine in MACHINES:
        found = load(TensorMap(array, (4, 16), type=kind, nan=True), [-16, 6], [], machine)
        assert (found.view(f"u{size}") == nan).all()
        found = load(TensorMap(array, (4, 16), type=kind, nan=True), [16, 6], [], machine)
        np.testing.assert_array_equal(found.view(f"u{size}").reshape(4, 16)[:2], array[6:, 16:])
        assert (found.view(f"u{size}").reshape(4, 16)[2:] == nan).all()


IMAGES: list[tuple[tuple[int, ...], type, dict[str, Any]]] = [
    ((3, 9, 16), np.float32, {"box": (12, 8), "corners": ((-1,), (-1,))}),
    ((3, 6, 7, 16), np.float16, {"box": (40, 8), "corners": ((-1, -1), (-1, -1))}),
    ((3, 6, 7, 32), np.float32, {"box": (24, 16), "corners": ((-2, -1), (0, 1)), "swizzle": 64}),
    ((3, 6, 7, 16), np.uint8, {"box": (30, 16), "corners": ((0, -1), (-2, -1)),
                               "steps": (1, 2, 3, 1)}),
    ((2, 4, 5, 6, 8), np.float32, {"box": (64, 8), "corners": ((-1,) * 3, (-1,) * 3)}),
    ((2, 4, 5, 6, 16), np.uint16, {"box": (50, 16), "corners": ((-1, 0, -1), (0, -1, -2)),
                                   "steps": (1, 2, 1, 2, 1)}),
]  # fmt: skip


def image_of(map_: TensorMap, where: list[int], offsets: list[int]) -> np.ndarray:
    """Pixel by pixel, each with its channels; ``where`` and ``offsets`` as PTX has them."""
    assert map_.corners
    pixels, channels = map_.box
    found = np.zeros((pixels, channels), map_.array.dtype)
    sizes = list(reversed(map_.array.shape[1:-1]))
    low, high = (list(reversed(corner)) for corner in map_.corners)
    steps = list(reversed(map_.steps[1:-1]))
    at, image = list(where[1:-1]), where[-1]
    for pixel in range(pixels):
        place = [n + offset for n, offset in zip(at, offsets, strict=True)]
        if 0 <= image < map_.array.shape[0] and all(
            0 <= n < size for n, size in zip(place, sizes, strict=True)
        ):
            row = map_.array[(image, *reversed(place))]
            for channel in range(channels):
                if 0 <= where[0] + channel < len(row):
                    found[pixel, channel] = row[where[0] + channel]
        for axis in range(len(at)):
            at[axis] += steps[axis]
            if at[axis] < sizes[axis] + high[axis]:
                break
            at[axis] = low[axis]
        else:
            image += 1
    return found


@pytest.mark.parametrize(("shape", "dtype", "options"), IMAGES)
def test_images(shape: tuple[int, ...], dtype: type, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    map_ = TensorMap(rng.integers(1, 99, shape).astype(dtype), **options)
    assert map_.corners
    low = list(reversed(map_.corners[0]))
    steps = list(reversed(map_.steps[1:-1]))
    starts = itertools.product((0, 1), (0, 1), (0, 16 // map_.array.itemsize))
    for on, image, channel in starts:
        where = [channel, *(a + on * step for a, step in zip(low, steps, strict=True)), image]
        offsets = [(on + i) % 3 for i in range(len(low))]
        wanted = swizzled(image_of(map_, where, offsets), map_.swizzle)
        for machine in MACHINES:
            found = load(map_, where, offsets, machine).reshape(-1, 16)
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow_cases(".add.noftz-bf16")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("how", [".add.noftz", ".min", ".max"])
def test_halves_are_reduced_in_bulk(how: str, kind: str) -> None:
    rng = np.random.default_rng(6)
    sent, start = numbers(kind, 512, rng), numbers(kind, 512, rng)
    text = f"cp.reduce.async.bulk.global.shared::cta.bulk_group{how}.{kind} [%o], [%s], %n;"
    wanted = by_element(how.partition(".noftz")[0], kind, start, sent)
    for machine in MACHINES:
        out, raw = start.copy(), sent.view(np.uint8)
        run = machine.launch(kernel(text), 1, 32, [out, raw, bytes(128), bytes(32), raw.nbytes])
        assert getattr(run, "hazards", []) == []
        np.testing.assert_array_equal(out, wanted)


def test_what_copies_in_bulk_move_is_counted() -> None:
    """16 rows of 128 bytes, of which 4 lie outside; then 48 bytes that begin within a sector."""
    array = np.zeros((40, 48), np.float32)
    where, sent = [0, 28, 0, 0, 0, 0, 0, 0], np.zeros((16, 32), np.float32)
    map_ = TensorMap(array, (16, 32))
    counters = store("", map_, where[:2], sent, simulator).counters
    found = counters.bulk_store
    assert (found.requests, found.bytes, found.sectors) == (1, 12 * 128, 12 * 4)
    assert counters.bulk_shared_load.bytes == 12 * 128
    assert counters.global_bytes == counters.global_load.bytes + 12 * 128
    text = "cp.async.bulk.global.shared::cta.bulk_group [%o+16], [%s], 48;"
    out, raw = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    ran = simulator.launch(kernel(text), 3, 32, [out, raw, bytes(128), bytes(32), 64])
    found = ran.counters.bulk_store
    assert (found.requests, found.bytes, found.sectors, found.ideal_sectors) == (3, 144, 6, 6)
    assert ran.counters.bulk_shared_load.bytes == 144

"""Surfaces: loads, stores and reductions of texels, and races between them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, Surface, Texture, unset
from tests.support import texture_programs as programs

OPCODES = ("suld", "sust", "sured")
"""Instructions tested here (``instructions/test_table.py``)."""


def launch(kernel: Kernel, **options: Any) -> simulator.Run:
    return simulator.launch(kernel, checks="none", **options)


def surface_code(geometry: str, size: int, mode: str, load: bool) -> str:
    """A load of a texel into ``%o0`` ..., or a store of ``%f``, at ``%a`` texels along x."""
    each, many = min(size, 4), max(1, size // 4)
    vector = f".v{many}" * (many > 1)
    place = programs.SURFACE_PLACES[geometry]
    narrow = each < 4
    if load:
        into = "%s0" if narrow else f"{{{', '.join(f'%o{i}' for i in range(many))}}}"
        done = f"suld.b.{geometry}{vector}.b{8 * each}.{mode} {into}, [%object, {place}];"
        done += " cvt.u32.u16 %o0, %s0;" * narrow
    else:
        stored = "%s0" if narrow else f"{{{', '.join(['%f'] * many)}}}"
        done = f"sust.b.{geometry}{vector}.b{8 * each}.{mode} [%object, {place}], {stored};"
    zeros = "".join(f"mov.b32 %o{i}, 0; " for i in range(4))
    return f"mul.lo.s32 %e, %a, {size}; cvt.u16.u32 %s0, %f; {zeros}{done}"


@pytest.mark.parametrize("geometry", programs.SHAPES)
@pytest.mark.parametrize(("dtype", "channels"), [("uint8", 1), ("int16", 1), ("float32", 1),
                                                 ("float16", 4), ("float32", 4)])  # fmt: skip
@pytest.mark.parametrize("mode", ["clamp", "zero"])
def test_surfaces(geometry: str, dtype: str, channels: int, mode: str) -> None:
    """Loads and stores of texels, inside and outside; a negative layer is beyond the last."""
    made = programs.surface(geometry, dtype, channels)
    size = made.array.dtype.itemsize * channels
    rng = np.random.default_rng(5)
    where = rng.integers(-4, 16, (64, 4)).astype(np.int32)
    words = np.zeros((64, 8), np.uint32)
    words[:, :4] = where.view(np.uint32)
    words[:, 5] = rng.integers(0, 2**32, 64)
    axes = ("dba" if geometry[0] == "a" else "cba")[-len(programs.SHAPES[geometry]) :]
    axes = "da" if geometry == "a1d" else axes
    shape = programs.SHAPES[geometry]
    at = [where[:, "abcd".index(axis)].astype(np.int64) for axis in axes]
    if geometry[0] == "a":
        at[0] = where[:, 3].view(np.uint32).astype(np.int64)
    inside = np.all([(x >= 0) & (x < n) for x, n in zip(at, shape, strict=True)], axis=0)
    clipped = tuple(np.clip(x, 0, n - 1) for x, n in zip(at, shape, strict=True))
    raw = made.array.reshape(*shape, -1).view(f"u{min(size, 4)}")
    found = programs.ran(launch, surface_code(geometry, size, mode, True), made, words)
    wanted = raw[clipped].astype(np.uint32)
    wanted[~inside & (mode == "zero")] = 0
    assert found[:, : wanted.shape[1]].tolist() == wanted.tolist()
    if mode == "zero":  # with clamping, several threads store into one texel
        _, first = np.unique(np.stack(clipped, 1), axis=0, return_index=True)
        words, chosen, good = words[first], tuple(c[first] for c in clipped), inside[first]
        after = raw.copy()
        after[tuple(c[good] for c in chosen)] = words[good, 5][:, None].astype(raw.dtype)
        programs.ran(launch, surface_code(geometry, size, mode, False), made, words)
        assert raw.tolist() == after.tolist()


@pytest.mark.parametrize(("dtype", "given", "stored"), [
    ("float16", 1.0009765, 1.0), ("float16", -70000.0, -65504.0), ("float32", 0.1, 0.1),
    ("int8", 200, 127), ("int8", -200, -128), ("uint16", 70000, 65535), ("int32", -5, -5),
])  # fmt: skip
def test_formatted_stores(dtype: str, given: float, stored: float) -> None:
    """``sust.p``, x in texels: halves are cut, integers clamped, as an H200 does."""
    word = np.array([given], np.float32 if dtype[0] == "f" else np.int64)
    words = np.array([[1, 0, 0, 0, 0, word.astype(np.float32).view(np.uint32)[0]
                       if dtype[0] == "f" else int(given) & 0xFFFFFFFF]], np.uint32)  # fmt: skip
    array = np.zeros((1, 3, 2), dtype)
    code = "sust.p.2d.v2.b32.trap [%object, {%a, %b}], {%f, %f};"
    programs.ran(launch, code, Surface(array, channels=2), words, 1)
    assert array.reshape(-1).tolist() == [0, 0, *[np.array(stored).astype(dtype)] * 2, 0, 0]


@pytest.mark.parametrize(
    ("way", "kind"), [("add", "u32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32")]
)
def test_reductions(way: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    array = rng.integers(0, 2**32, (2, 4), dtype=np.uint32)
    words = np.zeros((32, 8), np.uint32)
    words[:, 0], words[:, 1] = rng.integers(0, 4, 32) * 4, rng.integers(0, 2, 32)
    words[:, 5] = rng.integers(0, 2**32, 32)
    ways = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
    }
    dtype = np.int32 if kind == "s32" else np.uint32
    wanted = array.copy().view(dtype)
    ways[way].at(wanted, (words[:, 1], words[:, 0] // 4), words[:, 5].view(dtype))
    programs.ran(
        launch, f"sured.b.{way}.2d.{kind}.trap [%object, {{%a, %b}}], %f;", Surface(array), words, 1
    )
    assert array.view(dtype).tolist() == wanted.tolist()


def test_a_surface_may_be_read_only() -> None:
    array = np.zeros((4, 8), np.float32)
    array.flags.writeable = False
    code = "sust.b.2d.b32.trap [%object, {%a, %b}], %b;"
    run = simulator.launch(
        programs.program(code, 1),
        1,
        1,
        [Surface(array), np.zeros((1, 8), np.uint32), np.zeros((1, 1), np.uint32)],
    )
    assert [hazard.kind for hazard in run.hazards] == ["read-only"]


RACY = r"""
extern "C" __global__ void k(cudaSurfaceObject_t s, cudaTextureObject_t t, float* o) {
    int i = threadIdx.x;
    surf2Dwrite((float)i, s, i * 4, 0);
    BARRIER;
    READ;
}
"""


@pytest.mark.parametrize(("barrier", "read", "kinds"), [
    ("", "surf2Dread(&o[i], s, (i + 32) % 64 * 4, 0)", ["raw-race"]),
    ("__syncthreads()", "surf2Dread(&o[i], s, (i + 32) % 64 * 4, 0)", []),
    ("", "surf2Dread(&o[i], s, i * 4, 0)", []),
    ("", "o[i] = tex2D<float>(t, (i + 32) % 64, 0)", ["raw-race", "read-only-path"]),
    ("__syncthreads()", "o[i] = tex2D<float>(t, (i + 32) % 64, 0)", ["read-only-path"]),
    ("", "surf2Dwrite(2.f, s, 0, 0)", ["waw-race"]),
])  # fmt: skip
def test_surfaces_race(barrier: str, read: str, kinds: Sequence[str], tmp_path: Path) -> None:
    """Between threads, as global memory does."""
    path, array = tmp_path / "r.cu", np.zeros((2, 64), np.float32)
    path.write_text(RACY.replace("BARRIER", barrier).replace("READ", read))
    args = [Surface(array), Texture(array), np.zeros(64, np.float32)]
    run = simulator.launch(Kernel.from_cuda(path, "k"), 1, 64, args)
    assert {hazard.kind for hazard in run.hazards} == set(kinds)


@pytest.mark.parametrize("type", ["unsigned char", "short", "float"])
@pytest.mark.parametrize(
    ("further", "kinds"), [(0, ["read-only-path"]), (1, ["raw-race", "read-only-path"])]
)
def test_texels_in_one_word_race_each_for_itself(
    type: str, further: int, kinds: Sequence[str], tmp_path: Path
) -> None:
    path, dtype = tmp_path / "r.cu", {"short": "i2", "float": "f4"}.get(type, "u1")
    source = RACY.replace("(float)i, s, i * 4", f"({type})i, s, i * (int)sizeof({type})")
    read = f"o[i] = tex2D<{type}>(t, (i + {further}) % 64, 0)"
    path.write_text(source.replace("BARRIER", "").replace("READ", read))
    array = np.zeros((2, 64), dtype)
    args = [Surface(array), Texture(array), np.zeros(64, np.float32)]
    run = simulator.launch(Kernel.from_cuda(path, "k"), 1, 64, args)
    assert {hazard.kind for hazard in run.hazards} == set(kinds)
    assert (args[2] == (np.arange(64) + further) % 64).all() or further


def test_texels_that_nothing_wrote() -> None:
    """A fetch of one is an error, a store into one is not."""
    code = "sust.b.2d.b32.trap [%object, {%a, %b}], %b;"
    given, out = np.zeros((1, 8), np.uint32), np.zeros((1, 4), np.uint32)
    array = unset((2, 4), np.float32)
    run = simulator.launch(programs.program(code), 1, 1, [Surface(array), given, out])
    assert not run.hazards
    code = "tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%object, {%a, %b}];"
    given[:, 0] = np.array(2.5, np.float32).view(np.uint32)
    run = simulator.launch(programs.program(code), 1, 1, [Texture(array), given, out])
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.severity) == ("uninitialised", "error")


def test_objects_stand_in_structures(tmp_path: Path) -> None:
    """A structure by value takes them as its fields."""
    path = tmp_path / "s.cu"
    path.write_text(
        """\
struct P { int n; cudaTextureObject_t t; cudaSurfaceObject_t s; };
extern "C" __global__ void k(P p) { int i = threadIdx.x; if (i < p.n)
  surf1Dwrite(tex1Dfetch<int>(p.t, i) * 2, p.s, i * 4); }
"""
    )
    line, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    given = {"n": 5, "t": Texture(line, linear=True), "s": Surface(out)}
    run = simulator.launch(Kernel.from_cuda(path, "k"), 1, 8, [given])
    assert not run.hazards
    assert out.tolist() == [0, 2, 4, 6, 8, 0, 0, 0]

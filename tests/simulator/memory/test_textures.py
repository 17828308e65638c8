"""Textures and surfaces: fetches as an H200 gave them, surfaces, CUDA C++, errors and races."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, Surface, Texture
from tests.support import texture_programs as programs

OPCODES = ("tex", "tld4", "txq", "suq", "istypep")
"""Instructions tested here (``instructions/test_table.py``)."""
OUT = "{%o0, %o1, %o2, %o3}"
CASES = list(programs.cases())


def launch(kernel: Kernel, **options: Any) -> simulator.Run:
    return simulator.launch(kernel, checks="none", **options)


@pytest.mark.slow_but("a1d")
@pytest.mark.parametrize("geometry", programs.SHAPES)
def test_fetches_are_as_on_an_h200(geometry: str) -> None:
    """Where they are said to be (``docs/textures.md``); the GPU's tests look at the others."""
    seen = programs.seen()
    for name, where, made in CASES:
        if where == geometry and name in seen and not programs.inexact(name):
            assert programs.crc(programs.fetched(launch, made, where)) == seen[name], name


def test_linear_filter_by_hand() -> None:
    """Appendix "Texture Fetching": (1 - a) T[i] + a T[i + 1], a of 8 bits after the point."""
    array = np.array([1, 2, 4, 8], np.float32)
    x = np.array([0.0, 0.5, 0.75, 1.0, 1.5, 1.501, 1.503, 3.4, 9], np.float32)
    code = "tex.1d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%object, {%a}];"
    made = Texture(array, "linear")
    found = programs.ran(launch, code, made, x[:, None].view(np.uint32))[:, 0].view(np.float32)
    place = np.clip(np.floor((x - 0.5) * 256 + 0.5), 0, 3 * 256).astype(int)
    i, a = np.minimum(place // 256, 2), place - np.minimum(place // 256, 2) * 256
    assert found.tolist() == ((array[i] * (256 - a) + array[i + 1] * a) / 256).tolist()


@pytest.mark.parametrize("geometry", programs.SHAPES)
@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("address", ["clamp", "border", "wrap", "mirror"])
def test_offsets_are_texels_further_on(geometry: str, filter: str, address: str) -> None:
    """PTX ISA, "tex": added before the lookup, so that an address mode is that of the sum."""
    layered = geometry[0] == "a"
    shape = tuple(8 for _ in programs.SHAPES[geometry])
    rng, moves = np.random.default_rng(5), re.findall(r"-?\d+", programs.MOVES[geometry])
    array, scaled = programs.texels("float32", shape, 1, rng), address in ("wrap", "mirror")
    made = Texture(array, filter, address, scaled, layered=layered, border=(2.0, 0, 0, 0))
    words = np.zeros((64, 4), np.uint32)
    words[:, :3] = (rng.integers(-64, 128, (64, 3)) / 64).astype(np.float32).view(np.uint32)
    words[:, 3] = rng.integers(0, 8, 64)
    at = words[:, :3].view(np.float32) * (1 if scaled else 8)
    further = [int(move) / (8 if scaled else 1) for move in moves[:3]]
    found = []
    for moved, where in ((f", {programs.MOVES[geometry]}", 0), ("", [*further, 0, 0][:3])):
        words[:, :3] = (at + where).astype(np.float32).view(np.uint32)
        place = f"[%object, {programs.PLACES[geometry]}]"
        code = f"tex.{geometry}.v4.f32.f32 {OUT}|%p, {place}{moved}; selp.b32 %o3, 7, 9, %p;"
        found.append(programs.ran(launch, code, made, words))
    assert found[0].tolist() == found[1].tolist()
    assert (found[0][:, 3] == 7).all()  # the texels are there
    assert len(np.unique(found[0][:, 0])) > 1


def test_four_texels_are_gathered() -> None:
    """Counter-clockwise from the lower left, of one channel (PTX ISA, "tld4")."""
    array = np.arange(4 * 5 * 2, dtype=np.float32).reshape(4, 5, 2)
    place = np.array([[2.0, 1.0], [2.4, 1.49], [0, 0]], np.float32).view(np.uint32)
    code = "tld4.g.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%object, {%a, %b}];"
    found = programs.ran(launch, code, Texture(array, channels=2), place).view(np.float32)
    assert found[0].tolist() == [array[y, x, 1] for y, x in ((1, 1), (1, 2), (0, 2), (0, 1))]
    assert found[1].tolist() == found[0].tolist()
    assert found[2].tolist() == [array[0, 0, 1]] * 4


@pytest.mark.parametrize("kind", ["u32", "f32"])
@pytest.mark.parametrize("geometry", ["2d", "3d"])
def test_whole_coordinates_outside_are_zero(geometry: str, kind: str) -> None:
    dtype = "float32" if kind == "f32" else "uint8"
    made = Texture(programs.texels(dtype, programs.SHAPES[geometry], 1, np.random.default_rng(1)))
    place = programs.PLACES[geometry]
    code = f"tex.{geometry}.v4.{kind}.s32 {OUT}, [%object, {place}];"
    words = np.random.default_rng(1).integers(-3, 15, (64, 3)).astype(np.int32)
    found = programs.ran(launch, code, made, words.view(np.uint32))[:, 0]
    padded = np.pad(made.array, 20).astype(np.float32 if kind == "f32" else np.uint32)
    places = tuple(words[:, axis] + 20 for axis in reversed(range(made.array.ndim)))
    assert found.tolist() == padded[places].view(np.uint32).tolist()


@pytest.mark.parametrize(
    ("dtype", "channels"), [("float32", 4), ("int16", 2), ("float16", 1), ("uint8", 1)]
)
def test_linear_memory(dtype: str, channels: int) -> None:
    """``tex1Dfetch``; zero outside."""
    array = programs.texels(dtype, (50,), channels, np.random.default_rng(2))
    kind = "f32" if dtype[0] == "f" else f"{dtype[0].replace('i', 's')}32"
    code = f"tex.1d.v4.{kind}.s32 {OUT}, [%object, {{%a}}];"
    words = np.array([[0], [49], [7], [50], [-1], [2**31 - 1]], np.int64).astype(np.uint32)
    found = programs.ran(launch, code, Texture(array, linear=True, channels=channels), words)
    wide = array.reshape(50, -1).astype({"f": np.float32, "i": np.int32, "u": np.uint32}[dtype[0]])
    wanted = np.zeros((6, 4), np.uint32)
    wanted[:3, :channels] = wide[[0, 49, 7]].view(np.uint32)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("geometry", programs.SHAPES)
def test_sizes(geometry: str) -> None:
    """As an H200 says them."""
    width, height, depth = {
        "1d": (13, 1, 0), "2d": (13, 7, 0), "3d": (13, 7, 5), "a1d": (13, 3, 0), "a2d": (13, 7, 3),
    }[geometry]  # fmt: skip
    layered, array = (
        geometry[0] == "a",
        programs.texels("float32", programs.SHAPES[geometry], 1, np.random.default_rng(1)),
    )
    ask = (
        "txq.width.b32 %o0, [%object]; txq.height.b32 %o1, [%object]; txq.depth.b32 %o2, [%object]"
    )
    words = np.zeros((1, 1), np.uint32)
    asked = ask + "; istypep.texref %p, %object; selp.b32 %o3, 1, 0, %p;"
    of_texture = programs.ran(launch, asked, Texture(array, layered=layered), words)[0]
    assert of_texture.tolist() == [width, height, depth, 0]
    asked = ask.replace("txq", "suq") + "; suq.width.b32 %o3, [%object]; mov.b32 %o3, 0;"
    height = 0 if geometry == "1d" else height
    of_surface = programs.ran(launch, asked, Surface(array, layered=layered), words)[0]
    assert of_surface.tolist() == [width, height, depth, 0]


SOURCE = r"""
typedef cudaTextureObject_t T;
extern "C" __global__ void fetch(float* o, T one, T two, T three, T rows, T sheets, T line) {
    int i = threadIdx.x;
    float x = i % 5, y = i / 5 % 4, z = i % 3;
    o[i] = tex1D<float>(one, x + 0.5f) + tex1Dfetch<float>(line, i) * 100
        + tex2D<float>(two, x + 0.5f, y + 0.5f) * 3 + tex3D<float>(three, x, y, z) * 5
        + tex1DLayered<float>(rows, x, i % 4) * 7 + tex2DLayered<float>(sheets, x, y, i % 3) * 11
        + tex2DLod<float>(two, x, y, 0.f) * 13
        + tex2DGrad<float>(two, x, y, make_float2(1, 0), make_float2(0, 1)) * 17
        + tex2Dgather<float4>(two, x + 1.f, y + 1.f, 0).w * 19;
}
extern "C" __global__ void keep(cudaSurfaceObject_t s, cudaSurfaceObject_t sheets) {
    int x = threadIdx.x, y = threadIdx.y;
    float4 v;
    surf2Dread(&v, s, x * 16, y);
    v.w += x + 10 * y;
    surf2Dwrite(v, s, x * 16, y);
    surf2DLayeredwrite((short)(x - y), sheets, x * 2, y, 1);
}
"""


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
def test_cuda(build: str, tmp_path: Path) -> None:
    """What CUDA C++ calls them."""
    path = tmp_path / "t.cu"
    path.write_text(SOURCE)
    rng = np.random.default_rng(1)
    one, two, three = (rng.random(s).astype(np.float32) for s in ((5,), (4, 5), (3, 4, 5)))
    line = rng.random(32).astype(np.float32)
    o = np.zeros(32, np.float32)
    args = [o, Texture(one), Texture(two), Texture(three), Texture(two, layered=True),
            Texture(three, layered=True), Texture(line, linear=True)]  # fmt: skip
    run = simulator.launch(Kernel.from_cuda(path, "fetch", build=build), 1, 32, args)
    assert not run.hazards
    assert run.counters.texture_load.requests == 9
    assert run.counters.texture_load.accesses == 9 * 32
    assert run.counters.texture_load.bytes == 12 * 32 * 4 - 4 * 0
    i = np.arange(32)
    x, y, z = i % 5, i // 5 % 4, i % 3
    wanted = (
        one[x] + line * 100.0 + two[y, x] * 3 + three[z, y, x] * 5 + two[i % 4, x] * 7
        + three[z, y, x] * 11 + two[y, x] * 30 + two[y, x] * 19
    )  # fmt: skip
    assert np.allclose(o, wanted, rtol=1e-5)
    array, sheets = rng.random((3, 4, 4)).astype(np.float32), np.zeros((2, 3, 4), np.int16)
    before = array.copy()
    kernel = Kernel.from_cuda(path, "keep", build=build)
    both = [Surface(array, channels=4), Surface(sheets, layered=True)]
    run = simulator.launch(kernel, 1, (4, 3), both)
    assert not run.hazards
    y, x = np.mgrid[:3, :4]
    before[..., 3] += (x + 10 * y).astype(np.float32)
    assert (array == before).all()
    assert (sheets == np.stack([np.zeros((3, 4)), x - y])).all()
    counters = run.counters
    assert (counters.surface_load.bytes, counters.surface_store.bytes) == (192, 192 + 24)


ARRAY, WORDS = np.zeros((4, 8), np.float32), np.zeros((32, 4), np.uint32)
LINE = np.zeros(8, np.float32)
FETCH = f"tex.2d.v4.f32.f32 {OUT}, [%object, {{%a, %b}}];"
LOAD = "suld.b.2d.b32.trap %o0, [%object, {%a, %b}];"
WRONG = [
    (FETCH.replace("];", "], {%c, 8};"), Texture(np.ones((4, 4), np.float32)), "address-space",
     "at an offset that is not from -8 to 7"),
    (FETCH, 0, "address-space", "null handle"),
    (FETCH, 77, "address-space", "no handle, 0x4d"),
    (FETCH.replace("2d", "3d").replace("%b", "%b, %c, %c"), Texture(ARRAY),
     "address-space", "a 2-D texture of float32, as a 3-D one"),
    (FETCH.replace("v4.f32", "v4.u32"), Texture(ARRAY), "address-space", "as one of integers"),
    (FETCH, Surface(ARRAY), "address-space", "a 2-D surface of float32, as a texture"),
    (FETCH.replace("2d", "1d").replace(", %b", ""), Texture(LINE, linear=True),
     "address-space", "tex1Dfetch"),
    (LOAD.replace("%a, %b", "%c, %c"), Surface(ARRAY), "out-of-bounds",
     "(100, 100) of argument 0, which has 8 x 4 texels of 4 bytes"),
    (LOAD.replace("%a", "%d").replace("trap", "zero"), Surface(ARRAY), "misaligned", "byte 6"),
    ("sust.b.2d.v2.b32.trap [%object, {20, 0}], {%a, %a};", Surface(ARRAY),
     "misaligned", "byte 20"),
    (LOAD, Texture(ARRAY), "address-space", "as a surface"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "made", "kind", "words"), WRONG)
def test_wrong_uses_are_errors(code: str, made: Any, kind: str, words: str) -> None:
    given = np.zeros((32, 8), np.uint32)
    given[:, 2], given[:, 3] = 100, 6
    run = simulator.launch(
        programs.program(code), 1, 32, [made, given, np.zeros((32, 4), np.uint32)]
    )
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.severity) == (kind, "error")
    assert words in " ".join(str(hazard).split())


@pytest.mark.parametrize(("array", "options", "words"), [
    (np.zeros(4), {}, "texels of float64"),
    (np.zeros((2, 3), np.float32), {"channels": 4}, "not the 4 channels"),
    (np.zeros((2, 3), np.float32), {"channels": 3}, "1, 2 or 4 channels"),
    (np.zeros((2,) * 4, np.float32), {}, "1 to 3 axes"),
    (np.zeros((2,) * 4, np.float32), {"layered": True}, "1 to 3 axes"),
    (np.zeros((0, 2), np.float32), {}, "without elements"),
    (np.zeros(4, np.float32), {"address": "wrap"}, "needs normalized=True"),
    (np.zeros(4, np.int32), {"filter": "linear"}, "floats"),
    (np.zeros(4, np.int32), {"read": "normalized"}, "8 or 16 bits"),
    (np.zeros(4, np.float32), {"filter": "cubic"}, "filter is one of"),
    (np.zeros(4, np.int8), {"address": "border", "border": (1, 0, 0, 0)}, "border other than 0"),
    (np.zeros((2, 4), np.float32), {"linear": True}, "one axis"),
])  # fmt: skip
def test_what_cuda_has_not_is_refused(array: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Texture(array, **options)


def test_handles_may_lie_anywhere() -> None:
    """By value, in a structure's array, in memory: the same numbers; a handle each object."""
    source = """
    struct Some { cudaTextureObject_t t[3]; int n; };
    __device__ float one(cudaTextureObject_t t) { return tex2D<float>(t, threadIdx.x, 0); }
    extern "C" __global__ void k(float* out, const __grid_constant__ Some some,
                                 const cudaTextureObject_t* list, cudaSurfaceObject_t* to) {
        float sum = 0;
        for (int i = 0; i < some.n; ++i) sum += one(some.t[i]) * one(list[threadIdx.x % 3]);
        out[threadIdx.x] = sum;
        surf2Dwrite(sum, to[threadIdx.x % 2], threadIdx.x * 4, 0);
    }"""
    made = [Texture(np.arange(8, dtype=np.float32).reshape(1, 8) + 10 * i) for i in range(3)]
    to = [Surface(np.zeros((1, 8), np.float32)) for _ in range(2)]
    out = np.zeros(8, np.float32)
    kernel = Kernel.from_cuda(source, "k")
    assert simulator.launch(kernel, 1, 8, [out, (made, 3), made, to]).hazards == []
    i = np.arange(8)
    assert out.tolist() == ((3 * i + 30) * (i + i % 3 * 10)).tolist()
    for n, surface in enumerate(to):
        assert surface.array[0].tolist() == np.where(i % 2 == n, out, 0).tolist()


def test_a_pointer_does_not_reach_its_array() -> None:
    array = np.zeros((32, 4), np.uint32)
    code = "tex.2d.v4.u32.f32 {%o0, %o1, %o2, %o3}, [%object, {%a, %b}];"
    with pytest.raises(ValueError, match="no pointer reaches"):
        simulator.launch(
            programs.program(code), 1, 32, [Texture(array), np.zeros((32, 8), np.uint32), array]
        )
    ptx = programs.program(code).ptx.replace(".param .u64 p_object", ".param .u32 p_object")
    kernel = Kernel.from_ptx(ptx, "k")
    with pytest.raises(TypeError, match="4 bytes, a texture 8"):
        simulator.launch(kernel, 1, 1, [Texture(array), WORDS, WORDS.copy()])


@pytest.mark.parametrize(("code", "words"), [
    (FETCH.replace("2d", "cube").replace("%b", "%b, %c, %c"), "cube maps"),
    (FETCH.replace("tex", "tex.base"), "mipmaps: leave .base out"),
    ("txq.filter_mode.b32 %o0, [%object];", "as a parameter"),
    ("sured.p.add.2d.b32.trap [%object, {%a, %b}], %c;", "use sured.b"),
])  # fmt: skip
def test_what_is_left_is_refused(code: str, words: str) -> None:
    with pytest.raises(simulator.PtxError, match=re.escape(words)) as refused:
        simulator.launch(programs.program(code), 1, 1, [0, WORDS, WORDS.copy()])
    assert "PTX line" in str(refused.value)

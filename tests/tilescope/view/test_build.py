"""How a page is made: extents, address arithmetic, shrinking, modules, sampling, the command."""

import json
import re
import shlex
import zlib
from base64 import b64decode

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel, Texture, library
from simulator.observe.trace.trace import Trace
from tilescope.cli.main import main
from tilescope.commands.view import _said
from tilescope.view import Story, page
from tilescope.view import bundle as bundling
from tilescope.view.addresses import address_arithmetic
from tilescope.view.extents import extents, kind
from tilescope.view.page import BUDGET
from tilescope.view.pool import Pool, shrink


@pytest.mark.parametrize(
    ("source", "entry", "count", "expected"),
    [
        (
            "template <int TILE>\nvoid k() { __shared__ float As[TILE][TILE]; }",
            "k<16>",
            256,
            (16, 16),
        ),
        (
            "template <int T, int P>\nvoid k() { __shared__ float As[T][T + P]; }",
            "k<8, 1>",
            72,
            (8, 9),
        ),
        (
            "template <int T>\nvoid k(int* x) { __shared__ float As[T][2]; }",
            "k<8>(int*)",
            16,
            (8, 2),
        ),
        ("const int W = 4;\nvoid k() { __shared__ float As[2][W][W]; }", "k", 32, (2, 4, 4)),
        ("#define N 6 // six\nvoid k() { __shared__ __align__(16) int As[N*2]; }", "k", 12, (12,)),
        (
            "constexpr int N = 8;\nvoid k() { __shared__ float Bs[1], As[N / 2][2]; }",
            "k",
            8,
            (4, 2),
        ),
        (
            "template <int T>\nvoid k() { const int R = 4 * T, C = R;\n__shared__ int2 As[T][C]; }",
            "k<32 / 16>",
            32,
            (2, 16),
        ),
        ("void k() { __shared__ float As[sizeof(int)]; }", "k", 4, None),
        ("void k() { extern __shared__ float As[]; }", "k", 64, None),
        ("void k() { __shared__ float As[4][4]; }", "k", 17, None),
        ("void k() { __shared__ float Bs[4]; }", "k", 4, None),
    ],
)
def test_extents_of_shared_arrays(source, entry, count, expected):
    assert extents("As", count, source, entry) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("float", "f"), ("float4", "f"), ("double", "f"), ("int", "i"), ("unsigned int", "u"),
        ("uint2", "u"), ("unsigned", "u"), ("volatile int", "i"), ("char", "i"), ("T", ""),
    ],
)  # fmt: skip
def test_kinds_of_shared_arrays(declared, expected):
    assert kind("As", f"void k() {{ __shared__ {declared} As[4]; }}") == expected
    assert kind("Bs", f"void k() {{ __shared__ {declared} As[4]; }}") == ""


def test_extents_run_nothing():
    source = "void k() { __shared__ float As[__import__('os').getpid()]; }"
    assert extents("As", 4, source, "k") is None


def test_shrink_keeps_what_differs():
    whole = np.broadcast_to(np.arange(3.0).reshape(1, 3, 1, 1), (2, 3, 4, 5))
    assert shrink(whole).shape == (1, 3, 1, 1)
    nan = np.full((2, 2), np.nan)
    assert shrink(nan).shape == (1, 1)
    assert shrink(np.array([0.0, -0.0])).shape == (2,)
    changed = np.zeros((2, 3), np.int32)
    changed[1, 2] = 1
    assert shrink(changed).shape == (2, 3)


def test_pool_holds_each_content_once_and_all_of_it():
    pool = Pool()
    first = pool.add(np.arange(10, dtype=np.float32))
    assert pool.add(np.arange(10, dtype=np.float32)) == first
    second = pool.add(np.arange(10, dtype=np.int32))
    assert second != first
    packed = pool.packed()
    raw = zlib.decompress(b64decode(packed["bytes"]))
    index = np.frombuffer(raw, np.int32, 12).reshape(6, 2)
    start = packed["start"] + index[1, first]
    assert np.frombuffer(raw, np.float32, 10, start).tolist() == list(range(10))


def test_address_arithmetic_is_no_step():
    kernel = Kernel.from_cuda(library.get("histogram_shared").path, "privatised")
    run = simulator.launch(
        kernel, 1, 256, [np.zeros(256, np.uint8), np.zeros(256, np.uint32), 256], trace=True
    )
    lines = kernel.ptx.splitlines()
    found = {lines[number - 1].split()[0] for number in address_arithmetic(run.trace)}
    assert "mul.wide.u32" in found
    assert not {name for name in found if name.startswith(("ld", "st", "atom", "setp"))}


def test_modules_become_one_script(tmp_path, monkeypatch):
    folder = tmp_path / "js"
    folder.mkdir()
    (folder / "one.js").write_text('import { two as three } from "./two.js";\n\nthree();\n')
    (folder / "two.js").write_text("export function two() {}\nconst one = 1;\n")
    monkeypatch.setattr(bundling, "files", lambda _: tmp_path)
    script = bundling.bundle("one")
    assert script.index("module_two = ") < script.index("module_one = ")
    assert "const { two: three } = module_two;" in script
    assert "import" not in script
    assert "export" not in script
    (folder / "two.js").write_text('import { x } from "./one.js";\n')
    with pytest.raises(ValueError, match="import each other"):
        bundling.bundle("one")


def content(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text)[1])


def traced(size, blocks=16, **extra):
    kernel = library.get("matmul_naive").kernel()
    a, b, c = (np.ones((size, size), np.float32) for _ in range(3))
    trace = Trace(blocks, **extra)
    grid = -(-size // 16)
    args = [a, b, c, size, size, size]
    return simulator.launch(kernel, (grid, grid), (16, 16), args, trace=trace)


OPERANDS = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<4>; .reg .b64 %d<2>;
ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x;
ld.global.u32 %r1, [%d0]; add.u32 %r1, %r1, 5; add.u32 %r1, %r1, %r0; st.global.u32 [%d0], %r1;
mov.u32 %r1, %ntid.x; mov.b32 %r1, 0f40200000; st.global.u32 [%d0], %r1;
ret;
}
"""


def test_the_page_names_what_an_instruction_reads():
    run = simulator.launch(Kernel.from_ptx(OPERANDS), 1, 1, [np.zeros(1, np.uint32)], trace=True)
    load, *rest = content(page([Story(run)]))["runs"][0]["watched"]
    values = [(item["name"], item["inputs"]) for item in rest if item["kind"] == "value"]
    (loaded,) = load["outputs"]
    assert values == [
        ("add.u32", [loaded, "5"]), ("add.u32", [loaded, "%r0"]),
        ("mov.u32", ["%ntid.x"]), ("mov.b32", ["2.5"]),
    ]  # fmt: skip


def test_fewer_blocks_where_the_budget_is_small():
    run = traced(64)
    rng = np.random.default_rng(0)
    for event in run.trace.batches[0].events:  # values that do not compress
        for value in event.values:
            if value.ndim and value.dtype == np.float32:
                value[...] = rng.random(value.shape)
    (shown,) = content(page([Story(run)], budget=60_000))["runs"]
    blocks = [block for batch in shown["batches"] for block in batch["blocks"]]
    assert 1 <= len(blocks) < 16
    assert blocks[0] == 0
    assert len(page([Story(run)], budget=60_000)) < 60_000 + (2_000_000 - BUDGET)


def test_fewer_steps_where_one_block_is_too_much():
    run = traced(64, blocks=1)
    for event in run.trace.batches[0].events:
        for value in event.values:
            if value.ndim and value.dtype == np.float32:
                value[...] = np.random.default_rng(id(event)).random(value.shape)
    (shown,) = content(page([Story(run)], budget=20_000))["runs"]
    (batch,) = shown["batches"]
    assert batch["full"]
    assert 0 < batch["count"] < batch["recorded"]


@pytest.mark.slow
def test_blocks_of_hazards_are_among_those_kept():
    entry = library.get("matmul_missing_first_barrier")
    launch = entry.launch((64, 64, 64))
    run = simulator.launch(entry.kernel(), launch.grid, launch.block, launch.args, trace=True)
    named = {item.block for hazard in run.hazards for item in hazard.involved}
    (shown,) = content(page([Story(run)], budget=300_000))["runs"]
    kept = [block for batch in shown["batches"] for block in batch["blocks"]]
    assert len(kept) < 16
    assert any(x + 4 * (y + 4 * z) in kept for x, y, z in named)


def test_no_folder_of_this_machine_is_in_the_page():
    run = traced(16)
    text = page([Story(run)])
    assert str(library.get("matmul_naive").path.parent.parent.parent) not in text
    assert "matmul/naive.cu" in text


def invoke(*words):
    return CliRunner().invoke(main, ["view", *words])


def test_the_command_writes_a_page(tmp_path):
    file = tmp_path / "out.html"
    done = invoke("matmul_tiled", "--size", "20", "--tile", "8", "-o", str(file))
    assert done.exit_code == 0, done.output
    text = file.read_text(encoding="utf-8")
    (run,) = content(text)["runs"]
    assert run["schedule"] == "warps"
    assert run["note"] == "MxNxK = 20x20x20, tile 8"
    assert run["outputs"][0]["within"]
    assert f"{len(text.encode()) / 1e6:.2f} MB" in done.output


def test_the_command_says_that_there_are_hazards(tmp_path):
    source = tmp_path / "own.cu"
    source.write_text("__global__ void own(float* a) { a[threadIdx.x + 1] = 1; }\n")
    words = (str(source), "--grid", "1", "--block", "8")
    out = ("--block-at", "0", "-o", str(tmp_path / "out.html"))
    done = invoke(*words, *out, "f32[8]")
    _, head, *typed = done.output.splitlines()
    assert head == "1 error, which check reports:"
    given = shlex.split(" ".join(typed).replace("\\ ", ""))
    assert given == ["tilescope", "check", *words, "f32[8]"]
    assert "check" not in invoke(*words, *out, "f32[9]").output
    assert invoke(*words, *out, "-q", "f32[8]").output == ""


def test_the_command_keeps_a_schedule_and_compares(tmp_path):
    file = tmp_path / "out.html"
    done = invoke("matmul_naive", "--size", "16", "--compare", "matmul_tiled", "--schedule",
                  "lockstep", "-q", "-o", str(file))  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.output == ""
    runs = content(file.read_text(encoding="utf-8"))["runs"]
    assert [run["name"] for run in runs] == ["matmul_naive", "matmul_tiled"]
    assert {run["schedule"] for run in runs} == {"lockstep"}


@pytest.mark.slow
def test_the_command_proves_fixes(tmp_path):
    file = tmp_path / "out.html"
    done = invoke("matmul_missing_first_barrier", "--size", "32", "-q", "-o", str(file))
    assert done.exit_code == 0, done.output
    run, *fixed = content(file.read_text(encoding="utf-8"))["runs"]
    assert all(other["hidden"] for other in fixed)
    fixes = [hazard["fix_text"] for hazard in run["hazards"] if hazard["kind"] == "raw-race"]
    assert any("__syncthreads() after line 25: verified" in fix for fix in fixes)


def test_the_command_takes_a_file_of_ones_own(tmp_path):
    source = tmp_path / "own.cu"
    source.write_text("__global__ void own(float* a) { a[threadIdx.x] += 1; }\n")
    file = tmp_path / "out.html"
    done = invoke(str(source), "--grid", "1", "--block", "8", "f32[8]=arange", "-o", str(file))
    assert done.exit_code == 0, done.output
    run, *fixed = content(file.read_text(encoding="utf-8"))["runs"]
    assert all(other["hidden"] for other in fixed)
    assert [array["name"] for array in run["arrays"]] == ["a"]


@pytest.mark.slow_cases("words0")
@pytest.mark.parametrize("words", [("matmul_tiled", "-o", "/nowhere/at/all.html"), ("no_such",)])
def test_the_command_fails_in_one_line(words):
    done = invoke("--size", "16", *words)
    assert done.exit_code == 2
    assert done.output.startswith("error: ")
    assert done.output.count("\n") == 1


def test_open_shows_the_file(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    file = tmp_path / "out.html"
    done = invoke("matmul_naive", "--size", "16", "--open", "-q", "-o", str(file))
    assert done.exit_code == 0, done.output
    assert shown == [file.as_uri()]


@pytest.mark.slow
def test_the_command_records_the_blocks_that_are_named(tmp_path):
    file = tmp_path / "out.html"
    words = ["matmul_tiled", "--size", "128", "--block-at", "3,7", "--block-at", "5"]
    done = invoke(*words, "-q", "-o", str(file))
    assert done.exit_code == 0, done.output
    text = file.read_text(encoding="utf-8")
    assert len(text) < 2_000_000
    (run,) = content(text)["runs"]
    blocks = {block for batch in run["batches"] for block in batch["blocks"]}
    assert {3 + 8 * 7, 5} <= blocks
    assert run["command"] == "tilescope view matmul_tiled --size 128"
    done = invoke(*words, "--block-at", "8,0")
    assert done.exit_code == 2
    assert done.output == "error: --block-at 8,0: the grid has 8x8x1 blocks, counted from 0\n"


LAST = """
__global__ void last(float* a) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = a[t];
    if (blockIdx.x == 77) a[32 + t] = s[31 - t];
}
"""


def test_blocks_with_hazards_are_recorded(tmp_path):
    """The lanes of one block alone race, and no other is like it."""
    (tmp_path / "last.cu").write_text(LAST)
    file = tmp_path / "out.html"
    words = ["--grid", "100", "--block", "32", "f32[64]", "-q", "-o", str(file)]
    done = invoke(str(tmp_path / "last.cu"), *words)
    assert done.exit_code == 0, done.output
    run, *fixed = content(file.read_text(encoding="utf-8"))["runs"]
    assert all(other["hidden"] for other in fixed)
    assert {item["block"][0] for h in run["hazards"] for item in h["involved"]} == {77}
    assert 77 in {block for batch in run["batches"] for block in batch["blocks"]}
    assert "last.cu" in run["command"]
    assert str(tmp_path) not in run["command"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sub/a.cu k f32[8]=@sub/d.npy", "sub/a.cu k 'f32[8]=@sub/d.npy'"),
        ("{}/sub/a.cu k f32[8]=@{}/d.npy", "a.cu k 'f32[8]=@d.npy'"),
        ("a.cu k struct(f32[8]=@{}/d.npy,f32[8]=@{}/e.npy)",
         "a.cu k 'struct(f32[8]=@d.npy,f32[8]=@e.npy)'"),
    ],
)  # fmt: skip
def test_the_command_on_a_page_can_be_given_again(tmp_path, monkeypatch, given, said):
    """Paths are as they were given; of those from the root the page tells no folders."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.cu").touch()
    words = given.format(tmp_path, tmp_path).split()
    assert _said([*words, "-o", "page.html"]) == f"tilescope view {said}"


def test_the_page_says_where_the_way_ends():
    """What a texture gives is followed from there on, and where from is not."""
    source = """__global__ void k(cudaTextureObject_t t, float* o) {
        o[threadIdx.x] = 2 * tex2D<float>(t, threadIdx.x + 0.5f, 0.5f);
    }"""
    picture = Texture(np.arange(8, dtype=np.float32).reshape(1, 8))
    out = np.zeros(8, np.float32)
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 8, [picture, out], trace=True)
    assert out.tolist() == list(range(0, 16, 2))
    watched = content(page([Story(run)]))["runs"][0]["watched"]
    assert [w["name"].split(".")[0] for w in watched if w.get("ends")] == ["tex"]


def test_small_library_kernels_get_small_whole_numbers(tmp_path):
    file = tmp_path / "out.html"
    done = invoke("matmul_tiled", "--size", "6", "-q", "-o", str(file))
    assert done.exit_code == 0, done.output
    (run,) = content(file.read_text(encoding="utf-8"))["runs"]
    assert run["note"] == "MxNxK = 6x6x6, tile 2"
    assert all(output["within"] for output in run["outputs"])
    for place in "01":
        reach = run["story"]["ranges"][place]
        assert reach["whole"]
        assert 0 <= reach["low"] <= reach["high"] <= 5


def test_tile_sizes_are_predicted_where_asked(tmp_path):
    file = tmp_path / "out.html"
    words = ["matmul_tiled", "--size", "64", "--tiles", "8,16", "-q", "-o", str(file)]
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    (run,) = content(file.read_text(encoding="utf-8"))["runs"]
    assert [(row["tile"], row["threads"]) for row in run["tiles"]] == [(8, 64), (16, 256)]
    assert [row["loads"] for row in run["tiles"]] == [2 * 64**3 // tile for tile in (8, 16)]
    for row in run["tiles"]:
        assert row["low"] <= row["time"] <= row["high"]
    assert invoke(*words[:3], "--tiles", "x", "-o", str(file)).exit_code == 2

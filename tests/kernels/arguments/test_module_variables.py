"""``__device__`` and ``__constant__`` variables keep what is put there, as on a GPU."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.ptx.names import variable_name
from tests.support.command_line import tilescope
from tilescope import session

SOURCE = """\
__device__ int total = 7;
__device__ int* kept;
__constant__ float weight[2];
__device__ double table[4] = {1, 2, 3, 4};
typedef int (*Step)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ Step chosen;
extern "C" __global__ void add(int n) { atomicAdd(&total, n); table[n & 3] += n; }
extern "C" __global__ void get(int* out) { *out = total; }
extern "C" __global__ void row(double* out) { out[threadIdx.x] = table[threadIdx.x]; }
extern "C" __global__ void weigh(float* out) { out[threadIdx.x] = weight[threadIdx.x]; }
extern "C" __global__ void keep(int* a) { kept = a; }
extern "C" __global__ void use(int* out) { *out = *kept; }
extern "C" __global__ void choose() { chosen = twice; }
extern "C" __global__ void step(int* out) { *out = chosen(21); }
"""


def made(name: str, *args: object, build: str = "device", **how: object) -> simulator.Run:
    return simulator.launch(Kernel.from_cuda(SOURCE, name, build=build), 1, 1, list(args), **how)


def test_launches_of_a_session_find_what_others_left() -> None:
    out, row = np.zeros(1, np.int32), np.zeros(4)
    with session() as all_of_it:
        made("add", 5)
        made("add", 6)
        made("get", out)
        simulator.launch(Kernel.from_cuda(SOURCE, "row"), 1, 4, [row])
    assert out[0] == 7 + 5 + 6
    assert row.tolist() == [1, 2 + 5, 3 + 6, 4]
    assert not all_of_it.hazards
    made("get", out)
    assert out[0] == 7  # by itself, or in another session, it is loaded anew
    with session():
        made("get", out)
    assert out[0] == 7


def test_what_the_host_puts_there_stays() -> None:
    weights, out = np.float32([2, 3]), np.zeros(2, np.float32)
    kernel = Kernel.from_cuda(SOURCE, "weigh")
    with session():
        simulator.launch(kernel, 1, 2, [out], symbols={"weight": weights})
        assert out.tolist() == [2, 3]
        out[:] = 0
        run = simulator.launch(kernel, 1, 2, [out])
        assert (out.tolist(), run.hazards) == ([2, 3], [])
        simulator.launch(kernel, 1, 2, [out], symbols={"weight": np.float32([4, 5])})
        simulator.launch(kernel, 1, 2, [out])
        assert out.tolist() == [4, 5]
        made("add", 1, symbols={"total": 100})
        total = np.zeros(1, np.int32)
        made("get", total)
        assert total[0] == 101
    assert weights.tolist() == [2, 3]
    run = simulator.launch(kernel, 1, 2, [out])
    assert {h.kind for h in run.hazards} == {"unset-constant"}


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(("put", "used"), [("keep", "use"), ("choose", "step")])
def test_an_address_is_of_its_launch(build: str, put: str, used: str) -> None:
    """Arrays and functions have other addresses in the next one."""
    args = [np.arange(4, dtype=np.int32)] if put == "keep" else []
    with session():
        assert not made(put, *args, build=build).hazards
        found = made(used, np.zeros(1, np.int32), build=build).hazards
    assert "uninitialised" in {h.kind for h in found}


def test_builds_share_a_module_and_copies_do_not() -> None:
    out = np.zeros(1, np.int32)
    with session():
        made("add", 1, build="device")
        made("add", 2, build="source")
        made("get", out)
        assert out[0] == 10
        made("get", out, workers=2)
        assert out[0] == 10


PIPELINE = """\
seed = {seed}
[arrays]
out = "i32[1]"
x = "f32[4]=normal"
y = "f32[4]"
[[launch]]
file = "k.cu"
kernel = "add"
grid = 1
block = 1
args = [5]
[[launch]]
file = "k.cu"
kernel = "get"
grid = 1
block = 1
args = ["out"]
[[launch]]
file = "copy.cu"
grid = 1
block = 4
args = ["y", "f32[4]=normal"]
[expect]
out = "12"
y = "@{file}.npy"
"""
COPY = "__global__ void copy(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x]; }\n"


def test_pipelines_keep_them_and_draw_by_their_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # names are short there
    (tmp_path / "k.cu").write_text(SOURCE)
    (tmp_path / "copy.cu").write_text(COPY)
    drawn = [np.random.default_rng(seed).standard_normal(4) for seed in (0, 7, [0, 3], [7, 3])]
    for number, content in enumerate(drawn):
        np.save(tmp_path / f"{number}.npy", content.astype(np.float32))
    for seed, file in ((0, 2), (7, 3)):
        pipeline = Path(f"{seed}.toml")
        pipeline.write_text(PIPELINE.format(seed=seed, file=file))
        for command in ("run", "check"):
            said = tilescope(command, pipeline)
            assert said.exit_code == 0, said.output
        pipeline.write_text(PIPELINE.format(seed=seed, file=seed // 7))
        assert tilescope("run", pipeline).exit_code == 1  # those of [arrays] are others


def test_a_file_beside_a_pipeline_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    Path("copy.cu").write_text(COPY)
    np.save("right.npy", np.ones(4, np.float32))
    launch = (
        '[[launch]]\nfile = "copy.cu"\ngrid = 1\nblock = 4\nargs = ["y", "f32[4]=@right.npy"]\n'
    )
    Path("p.toml").write_text(f'[arrays]\ny = "f32[4]"\n{launch}[expect]\ny = "@right.npy"\n')
    for folder in (tmp_path / "sub", tmp_path):
        monkeypatch.chdir(folder)
        assert tilescope("run", "p.toml" if folder.name == "sub" else "sub/p.toml").exit_code == 0


SCRIPT = '''
import numpy as np
from cuda.bindings import driver, nvrtc
def ok(answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else None
source = b"""KERNELS"""
program = ok(nvrtc.nvrtcCreateProgram(source, b"k.cu", 0, [], []))
nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_90"])
text = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
nvrtc.nvrtcGetPTX(program, text)
modules = [ok(driver.cuModuleLoadData(text)) for _ in range(2)]
out, got = ok(driver.cuMemAlloc(4)), np.zeros(1, np.int32)
def launch(module, name, *words):
    kernel = ok(driver.cuModuleGetFunction(module, name))
    given = (tuple(w for w, _ in words), tuple(k for _, k in words))
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, given, 0))
import ctypes
for module, n in ((modules[0], 5), (modules[1], 20), (modules[0], 6)):
    launch(module, b"add", (n, ctypes.c_int))
for module in modules:
    launch(module, b"get", (out, None))
    ok(driver.cuMemcpyDtoH(got.ctypes.data, out, 4))
    print("total", got[0])
'''


@pytest.mark.slow
def test_a_scripts_modules_have_their_own(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings", reason="cuda-python, an extra, is not installed")
    script = tmp_path / "s.py"
    script.write_text(SCRIPT.replace("KERNELS", SOURCE))
    command = [sys.executable, "-m", "tilescope", "exec", str(script)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "total 18\ntotal 27\n" in said


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN3M114smemE", "smem"),
        ("_ZN12_GLOBAL__N_14dataE", "data"),
        ("_ZN12_GLOBAL__N_12tvILi64ELi3EEE", "tv"),
        ("_ZZN3M111fILi3EEEvPiE5inner", "inner"),
        ("_ZZN1A1fI5ThingEEvvE3tab", "tab"),
        ("_ZN1AI5ThingE3tabE", "tab"),
        ("_ZZ1kvE1s__10_", "s"),
        ("_Z3a1b", "a1b"),
        ("_ZN2ns6helperILi3EEEiPKf", "helper"),
        ("_Z9999a", "_Z9999a"),
    ],
)
def test_a_name_behind_one_that_ends_in_digits(symbol: str, name: str) -> None:
    assert variable_name(symbol) == name


def test_a_namespace_that_ends_in_a_digit() -> None:
    source = """
namespace v2 { namespace { __device__ int factor; }
__global__ void k(int* out) {
    extern __shared__ int s[];
    s[threadIdx.x] = factor;
    out[threadIdx.x] = s[threadIdx.x ^ 32];
} }"""
    out = np.zeros(64, np.int32)
    kernel = Kernel.from_cuda(source, "v2::k")
    ran = simulator.launch(kernel, 1, 64, [out], 256, symbols={"factor": 3})
    assert (out == 3).all()
    assert {hazard.variable for hazard in ran.hazards} == {"s"}

"""What Triton and tilelang make of their tutorials' kernels: right, and without a hazard.

The PTX in ``front_ends/`` stands for them in every run; where they are installed, their own is
held to the same. What has lost a wait or a barrier is found.
"""

import dataclasses
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, TensorMap
from kernels.arguments.adapter import Adapter
from tests.support.paths import TESTS

FOLDER = TESTS / "kernels" / "front_ends"
EPS16 = 2.0**-11


@dataclass
class Launch:
    """Arguments, the place of the result among them, what it should be and how nearly."""

    grid: Any
    args: list[Any]
    out: int
    expected: Any
    bound: Any = 0


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    return rng.integers(-4, 5, shape).astype(dtype)


def matmul(rng: np.random.Generator, dtype: Any) -> Launch:
    a, b = whole(rng, (80, 112), dtype), whole(rng, (112, 48), dtype)
    args = [a, b, np.zeros((80, 48), dtype), 80, 48, 112]
    return Launch((2, 2), args, 2, (a.astype(np.float64) @ b).astype(dtype))


def tilelang_matmul(rng: np.random.Generator) -> Launch:
    a, b = whole(rng, (128, 160), np.float16), whole(rng, (160, 64), np.float16)
    return Launch((1, 2), [a, b, np.zeros((128, 64), np.float16)], 2, a.astype(np.float64) @ b)


def tilelang_tma(rng: np.random.Generator) -> Launch:
    launch = tilelang_matmul(rng)
    a, b, _ = launch.args
    launch.args[:2] = TensorMap(a, (64, 32), swizzle=64), TensorMap(b, (32, 64), swizzle=128)
    return launch


def softmax(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=(5, 208)).astype(np.float32)
    power = np.exp(x.astype(np.float64))
    expected = power / power.sum(1, keepdims=True)
    # exp is 2 ulp off, its argument in base 2 half an ulp of at most 16.
    return Launch(5, [np.zeros_like(x), x, 208], 0, expected, expected * 2.0**-19)


def layer_norm(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=(3, 515)).astype(np.float16)
    weight, bias = rng.normal(size=(2, 515)).astype(np.float32)
    wide = x.astype(np.float64)
    scaled = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    expected = scaled * weight + bias
    args = [np.zeros_like(x), x, weight, bias, 515, 1e-5]
    return Launch(3, args, 0, expected, abs(expected) * EPS16 + 1e-5)


def attention(rng: np.random.Generator) -> Launch:
    q, k, v = (rng.normal(size=(1, 128, 32)).astype(np.float16) for _ in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.25
    power = np.where(np.tri(128) > 0, np.exp(scores), 0)
    expected = power / power.sum(-1, keepdims=True) @ v
    # Rounded to f16: the result, and before it each weight.
    bound = EPS16 * (abs(expected) + abs(v).max()) + 1e-5
    return Launch((2, 1), [q, k, v, np.zeros_like(q), 0.25, 128], 3, expected, bound)


LAUNCHES: dict[str, Callable[[np.random.Generator], Launch]] = {
    "matmul_fp16": lambda rng: matmul(rng, np.float16),
    "matmul_fp32": lambda rng: matmul(rng, np.float32),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "attention": attention,
    "tilelang_matmul": tilelang_matmul,
    "tilelang_tma": tilelang_tma,
}
KERNELS = [(name, arch) for name in LAUNCHES for arch in (80, 90)]
KERNELS.remove(("tilelang_tma", 80))
COPYING = [
    kernel for kernel in KERNELS if kernel[0] not in ("softmax", "layer_norm", "tilelang_tma")
]


def stand_in(name: str, arch: int) -> str:
    return (FOLDER / f"{name}_{arch}.ptx").read_text()


def own(name: str, arch: int) -> str:
    front_end = name.split("_")[0] if name.startswith("tilelang") else "triton"
    pytest.importorskip(front_end, reason=f"the extra {front_end}")
    module = importlib.import_module(f"tests.kernels.front_ends.{front_end}_kernels")
    made: str = module.compiled(name, arch)
    return made


def ran(text: str, name: str, schedule: str = "lockstep") -> tuple[simulator.Run, Launch]:
    """A run of a kernel; Triton's have two pointers more, for scratch memory."""
    kernel, launch = Kernel.from_ptx(text), LAUNCHES[name](np.random.default_rng(1))
    shared = int(re.findall("shared: (.*)", text)[0])
    block = int(re.findall(r"ntid (\d+)", text)[0])
    args = launch.args + [0] * (len(kernel.params) - len(launch.args))
    run = simulator.launch(kernel, launch.grid, block, args, shared_bytes=shared, schedule=schedule)
    return run, launch


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@pytest.mark.slow_but("softmax-80", "softmax-90", "tilelang_matmul-90-own")
@pytest.mark.parametrize("made_by", [stand_in, own])
@pytest.mark.parametrize(("name", "arch"), KERNELS)
def test_right_and_without_a_hazard(
    name: str, arch: int, made_by: Callable[[str, int], str]
) -> None:
    text, results = made_by(name, arch), []
    for schedule in ("lockstep", "warps"):
        run, launch = ran(text, name, schedule)
        assert run.hazards == []
        results.append(launch.args[launch.out])
        assert np.all(abs(results[-1] - launch.expected) <= launch.bound)
    np.testing.assert_array_equal(*results)
    shared_rows = name in ("softmax", "layer_norm")  # each lane of a warp stores the warp's sum
    assert any("the same value" in note for note in run.notes) == shared_rows


@pytest.mark.slow_but("tilelang_matmul-90-own", "wgmma.wait_group-a wgmma...-matmul_fp16-90")
@pytest.mark.parametrize("made_by", [stand_in, own])
@pytest.mark.parametrize(
    ("name", "arch"),
    [pytest.param(*k, marks=pytest.mark.slow) if k[1] == 80 else k for k in COPYING],
)
@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("cp.async.wait_group", "an asynchronous copy that is under way"),
        ("wgmma.wait_group", "a wgmma that is under way"),
        ("bar.sync", "another warp"),
    ],
)
def test_what_is_lost_is_reported(
    lost: str, words: str, name: str, arch: int, made_by: Callable[[str, int], str]
) -> None:
    text, gone = re.subn(rf"^\s*{lost}.*;", "", made_by(name, arch), flags=re.M)
    assert (gone > 0) == (lost != "wgmma.wait_group" or arch == 90)
    found = [h for h in ran(text, name)[0].hazards if h.severity == "error"]
    assert any(words in h.message for h in found) == (gone > 0)
    places = {i.source.file for h in found for i in h.involved}
    assert name == "tilelang_matmul" or all(file.endswith(".py") for file in places)


RELAY = """
extern "C" __global__ void relay(float* x, int loops) {
    int t = threadIdx.x;
    for (int k = 0; k < LOOPS; k++) {
        float a = x[2 * t], b = x[2 * t + 1];
        float low = __shfl_sync(MASK, t & 1 ? b : a, t / 2);
        float high = __shfl_sync(MASK, t & 1 ? a : b, t / 2 + 16);
        x[t] = GIVEN;
        x[t + 32] = high;
    }
}
"""


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        ({}, set()), ({"GIVEN": "1.f"}, {"war-race"}), ({"MASK": "__activemask()"}, {"war-race"}),
        ({"LOOPS": "loops"}, {"raw-race"}),
    ],
)  # fmt: skip
def test_what_came_through_a_shuffle_has_been_read(
    changed: dict[str, str], kinds: set[str]
) -> None:
    """As Triton changes layouts; not in a loop, nor where a lane might be missing."""
    text = RELAY
    for name, word in ({"LOOPS": "1", "MASK": "~0u", "GIVEN": "low"} | changed).items():
        text = text.replace(name, word)
    names = ("x", "loops")
    adapter = Adapter(names, names, list, repeats=True)
    kernel = dataclasses.replace(Kernel.from_cuda(text, "relay"), adapter=adapter)
    run = simulator.launch(kernel, 1, 32, [np.arange(64, dtype=np.float32), 2])
    assert {h.kind for h in run.hazards} == kinds

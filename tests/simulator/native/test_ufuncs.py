"""Native forms as universal functions: their loops, and launches in NumPy that call them."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.ptx.types import DTYPES
from simulator.compile.ir import Compute
from simulator.execute.prepare import prepare
from simulator.isa.numerics.arithmetic import fma_f32
from simulator.isa.scalar.fma_chain import Products
from simulator.native import jit, selection
from simulator.native.ufuncs import loops, substitution
from tests.simulator.native.test_forms import operands, steps
from tests.support.engines import all_forms, copied, outcome, with_forms

pytestmark = pytest.mark.skipif(bool(jit.why_unavailable()), reason=jit.why_unavailable())

CUDA = """
extern "C" __global__ void forms(const float *a, const int *b, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i], sum = 0;
    for (int k = 0; k < rounds; k++) {
        x = x * 1.5f + sum / (1.0f + b[i] % 7);
        sum += __expf(-x * x) + sinf(x) + rsqrtf(1.0f + x * x);
        if ((i + k) % 3 == 0) sum -= x;
    }
    out[i] = sum;
}
extern "C" __global__ void products(const float *a, const float *b, float *out, int n) {
    int row = threadIdx.y, column = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 4)
        sum += a[row * n + k] * b[k * n + column] + a[row * n + k + 1] * b[(k + 1) * n + column]
             + a[row * n + k + 2] * b[(k + 2) * n + column];
    out[row * n + column] = sum;
}
extern "C" __global__ void tables(const unsigned *a, unsigned *out) {
    unsigned x = a[threadIdx.x], y = a[threadIdx.x + 32], z = a[threadIdx.x + 64];
    unsigned one, other;
    asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(one) : "r"(x), "r"(y), "r"(z));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(other) : "r"(x), "r"(y), "r"(z));
    out[threadIdx.x] = one + other * 3;
}
extern "C" __global__ void racy(float *a) {
    __shared__ float part[64];
    part[threadIdx.x] = a[threadIdx.x] * 2.0f + 1.0f;
    a[threadIdx.x] = part[63 - threadIdx.x] / 3.0f;
}
extern "C" __global__ void unset(const float *a, float *out) {
    __shared__ float part[64];
    if (threadIdx.x < 32) part[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x] * 0.5f + 1.0f;
}
"""
LANES = 601
RANDOM = np.random.default_rng(5)


def function_of(step: Compute, level: int = 2) -> np.ufunc:
    text = loops.module_text(step)
    assert text is not None
    loop = substitution.Loop(text, step, is_slow=True)
    return loop.compiled(level)


def bits(value: Any, type: str) -> np.ndarray:
    array = np.asarray(value)
    assert array.dtype == DTYPES[type]
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)


def signatures() -> dict[Any, Compute]:
    """A step for each sizes of operands and results."""
    found = {}
    for step in steps():
        if loops.module_text(step):
            sizes = [tuple(DTYPES[t].itemsize for t in some) for some in loops.types_of(step)]
            found.setdefault(tuple(sizes), step)
    return found


def layouts(given: list[np.ndarray]) -> Iterator[list[Any]]:
    """Operands as they come: contiguous, one for all lanes, with strides, broadcast."""
    yield given
    for place in range(len(given)):
        yield [a[place + 3] if i == place else a for i, a in enumerate(given)]
        yield [a[5] if i != place else a for i, a in enumerate(given)]
    yield [a[::-1] for a in given]
    yield [a[::3] if i else np.ascontiguousarray(a[::3]) for i, a in enumerate(given)]
    yield [a[7] for a in given]
    shapes = itertools.cycle([(8, 1, 16), (1, 4, 16), (8, 4, 1), (8, 4, 16)])
    yield [a[: int(np.prod(shape))].reshape(shape) for a, shape in zip(given, shapes, strict=False)]


def test_loops_give_the_bits_of_rows_in_every_layout() -> None:
    found = signatures()
    assert len(found) > 20
    for step in found.values():
        function, (inputs, outputs) = function_of(step), loops.types_of(step)
        for given in layouts([a[:LANES] for a in operands(inputs, 3)]):
            with np.errstate(all="ignore"):
                want, got = step.op.fn(*given), function(*given)
            pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (want, got)), outputs,
                        strict=True)  # fmt: skip
            for one, other, type in pairs:
                shape = np.broadcast_shapes(*(np.shape(a) for a in given))
                assert np.shape(other) == shape
                expected = np.broadcast_to(bits(one, type), shape)
                np.testing.assert_array_equal(bits(other, type), expected, step.instruction.name)


def test_a_result_may_lie_where_an_operand_is() -> None:
    step = next(s for s in steps() if s.op.fn is fma_f32)
    function, (a, b, c) = function_of(step), RANDOM.standard_normal((3, 1000)).astype("f")
    want = fma_f32(a, b, c)
    got = c.copy()
    function(a, b, got, out=got)
    assert got.tobytes() == want.tobytes()
    shifted = np.append(c, c[:1])
    function(a, b, shifted[:-1], out=shifted[1:])
    assert shifted[1:].tobytes() == want.tobytes()


def test_sums_of_products_are_those_of_rows() -> None:
    step = next(s for s in steps() if s.op.fn is fma_f32)
    shapes = [
        ((8, 16, 1), (8, 1, 16), ()), ((64,), (64,), (64,)), ((), (16,), (4, 16)), ((), (), ()),
    ]  # fmt: skip
    for one, other, start in shapes:
        a, b, c = (RANDOM.standard_normal(shape).astype("f")[()] for shape in (one, other, start))
        with np.errstate(all="ignore"):
            mine, rows = substitution.FusedProducts(function_of(step), a, b, c), Products(a, b, c)
            for chain in (mine, rows):
                chain.add(b, a)
            found = [np.asarray(chain.last(a, b)) for chain in (mine, rows)]
        assert found[0].tobytes() == found[1].tobytes()


LAUNCHES = {
    "forms": (4, 64, [RANDOM.standard_normal(256).astype("f"), RANDOM.integers(-50, 50, 256, "i4"),
                      np.zeros(256, "f"), 20]),
    "products": (1, (16, 16), [*RANDOM.standard_normal((2, 16, 16)).astype("f"),
                               np.zeros((16, 16), "f"), 16]),
    "tables": (1, 32, [RANDOM.integers(0, 1 << 32, 96, "u4"), np.zeros(32, "u4")]),
    "racy": (1, 64, [RANDOM.standard_normal(64).astype("f")]),
    "unset": (1, 64, [RANDOM.standard_normal(64).astype("f"), np.zeros(64, "f")]),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_with_native_forms_are_those_without(name: str) -> None:
    grid, block, args = LAUNCHES[name]
    kernel, given = Kernel.from_cuda(CUDA, name), copied(args)
    run = simulator.launch(kernel, grid, block, given, engine="numpy")
    found = with_forms(kernel, grid, block, again := copied(args))
    assert found.pop("forms")
    assert found == outcome(run, given)
    program = prepare(kernel, grid, block, again, 0, "lockstep", 1 << 20, False).program
    calls = counted(program.substitutes.functions)
    simulator.launch(kernel, grid, block, copied(args), engine="numpy")
    assert sum(calls.values()) == 0
    simulator.launch(kernel, grid, block, copied(args))
    assert sum(calls.values()) > 0


def counted(functions: dict[str, object]) -> dict[str, int]:
    """Count the calls of each function from now on."""
    calls = dict.fromkeys(functions, 0)

    def counting(name: str, function: Any) -> Any:
        def call(*given: Any) -> Any:
            calls[name] += 1
            return function(*given)

        return call

    functions |= {name: counting(name, function) for name, function in functions.items()}
    return calls


def test_a_launch_takes_them_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.from_cuda(CUDA.replace("forms", "long_one"), "long_one")
    grid, block, args = LAUNCHES["forms"]
    calls: list[dict[str, int]] = []
    made = substitution.substitute

    def substitute(program: Any) -> None:
        made(program)
        calls.append(counted(program.substitutes.functions))
        program.substitutes.add(dict(program.substitutes.functions))

    given = [*copied(args[:-1]), 200]
    with all_forms():
        monkeypatch.setattr(selection, "PATIENCE", 0.0)
        monkeypatch.setattr(selection, "native_seconds", lambda program, warps: float("inf"))
        monkeypatch.setattr(substitution, "preparation_seconds", lambda program: 0.0)
        monkeypatch.setattr(substitution, "substitute", substitute)
        run = simulator.launch(kernel, grid, block, given)
    assert run.engine == "numpy"
    assert len(calls) == 1
    assert sum(calls[0].values()) > 0
    again = [*copied(args[:-1]), 200]
    assert outcome(simulator.launch(kernel, grid, block, again, engine="numpy"), again) == outcome(
        run, given
    )

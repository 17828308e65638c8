"""Names that CUDA had once: the error says what took their place."""

import re

import pytest

from kernels import CompileError, Kernel
from kernels.source.deprecated_names import hints
from simulator import PtxError
from simulator.compile.compiler import compile_ptx
from simulator.isa.memory.stack import STACK_BYTES


def said(source: str) -> str:
    """What is said of a source that does not compile, or of its PTX."""
    try:
        kernel = Kernel.from_cuda(source, "k")
        compile_ptx(kernel.ptx, kernel.entry, 0, STACK_BYTES)
    except (CompileError, PtxError) as error:
        return str(error)
    pytest.fail("it compiles")


def kernel(statement: str, before: str = "") -> str:
    return f"{before}\n__global__ void k(float* x, int* n) {{ int t = threadIdx.x; {statement} }}"


@pytest.mark.parametrize("name", ["__shfl", "__shfl_up", "__shfl_down", "__shfl_xor"])
def test_shuffles_without_a_mask(name: str) -> None:
    text = said(kernel(f"x[t] += {name}(x[t], 1);"))
    assert f"since CUDA 9 {name}() is {name}_sync(mask, ...), where mask" in text
    assert text.count("_sync(") == 1


def test_several_shuffles_are_one_hint() -> None:
    text = said(kernel("x[t] = __shfl(x[t], 3) + __shfl_xor(x[t], 1);"))
    assert "__shfl() is __shfl_sync(mask, ...), __shfl_xor() is __shfl_xor_sync(mask, ...)" in text
    assert text.count("since CUDA 9") == 1


@pytest.mark.parametrize("name", ["__ballot", "__any", "__all"])
def test_votes_without_a_mask(name: str) -> None:
    """The compiler still makes PTX of them that no GPU from sm_70 on has."""
    assert f"{name}() is {name}_sync(mask, ...)" in said(kernel(f"n[t] = {name}(t > 3);"))


@pytest.mark.parametrize(("way", "name"), [("down", "__shfl_down"), ("bfly", "__shfl_xor")])
def test_instructions_without_a_mask(way: str, name: str) -> None:
    text = said(kernel(f'asm volatile("shfl.{way}.b32 %0, %0, 1, 31;" : "+f"(x[t]));'))
    assert f"'shfl.{way}.b32' is not PTX" in text
    assert re.findall(r"(\w+)_sync", text) == [name]


@pytest.mark.parametrize(("statement", "name"), [
    ("cudaBindTexture(0, 0, x, 4);", "cudaCreateTextureObject"),
    ("cudaUnbindTexture(0);", "cudaDestroyTextureObject"),
    ("cudaThreadSynchronize();", "cudaDeviceSynchronize"),
    ("x[t] = saturate(x[t]);", "__saturatef"),
])  # fmt: skip
def test_other_names(statement: str, name: str) -> None:
    assert name in said(kernel(statement))


@pytest.mark.parametrize("declared", ["texture<float, 1> old;", "surface<void, 2> old;"])
def test_references(declared: str) -> None:
    text = said(kernel("x[t] = tex1Dfetch(old, t);", declared))
    assert "take a cudaTextureObject_t" in text


def test_names_of_the_users_own_get_no_hint() -> None:
    assert said(kernel("x[t] = shfl(x[t]) + my_ballot(t);")).count("since CUDA") == 0
    own = "__device__ float __shfl_down(float v, int by) { return v + by; }"
    assert Kernel.from_cuda(kernel("x[t] = __shfl_down(x[t], 1);", own), "k").params
    assert hints('identifier "__shfl_sync" is undefined') == []

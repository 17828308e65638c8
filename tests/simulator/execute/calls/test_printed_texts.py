"""What ``%s`` reads: a text up to its NUL, as loads would."""

import numpy as np
import pytest

import simulator
from kernels import Kernel, unset

BUILDS = ("device", "source")


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("char b[8]; b[0] = 'a'; b[n] = 0;", False),
        ("char b[8]; b[n] = 'a'; b[n + 1] = 0;", True),
        ("char b[8]; b[0] = 'a'; b[n - 1] = 'b';", True),
        ("char c[8], b[8]; c[0] = 'a'; c[n] = 0; for (int i = 0; i < 8; i++) b[i] = c[i];", False),
        ("char c[8], b[8]; c[0] = 'a'; c[n + 1] = 0; for (int i = 0; i < 8; i++) b[i] = c[i];",
         True),
        ("__shared__ char b[8]; b[0] = 'a'; b[n] = 0;", False),
        ("__shared__ char b[8]; b[0] = 'a'; b[n + 1] = 0;", True),
        ("__shared__ char c[8]; char* b = c + 4; b[0] = 'a'; b[n] = 0;", False),
        ("__shared__ char c[8]; char* b = c + 4; b[-1] = b[n] = 0;", True),
        ("char* b = g; b[0] = 'x'; b[n] = 0;", False),
        ("char* b = g; b[0] = 'x'; b[n + 1] = 0;", True),
    ],
)  # fmt: skip
def test_a_text_is_written_up_to_its_end(body: str, told: bool, build: str) -> None:
    """``%s`` reads as far as the NUL, and uninitialised memory is an error there."""
    source = f'#include <cstdio>\n__global__ void k(char* g, int n) {{ {body}\nprintf("%s|", b); }}'
    kernel = Kernel.from_cuda(source, "k", build=build)
    run = simulator.launch(kernel, 1, 1, [unset(8, np.int8), 1])
    assert [hazard.kind for hazard in run.hazards] == ["uninitialised"] * told
    assert told or run.output[1:] == "|"


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 2])
@pytest.mark.parametrize(
    ("text", "barrier", "told"),
    [
        ("__shared__ char text[4]", "__syncthreads();", []),
        ("__shared__ char text[4]", "", ["raw-race"]),
        ("__shared__ short many[4]; char* text = (char*)many + 1", "", ["raw-race"]),
        ("char* text = g", "__syncthreads();", []),
        ("char* text = g", "", ["raw-race"]),
        ("char* text = g + 8 * blockIdx.x", "", ["raw-race"]),
        ("char* text = g + 16 * threadIdx.x", "", []),
    ],
)
def test_a_text_that_another_thread_wrote(
    text: str, barrier: str, told: list[str], schedule: str | int
) -> None:
    source = f"""#include <cstdio>
__global__ void k(char* g) {{
    {text};
    if (threadIdx.x == 32) {{ text[0] = 'a'; text[1] = 0; }}  // 4
    {barrier}
    if (threadIdx.x == 0) printf("%s%s", text, "b");  // 6
}}"""
    kernel, left = Kernel.from_cuda(source, "k"), np.zeros(1024, np.int8)
    run = simulator.launch(kernel, 1, 64, [left], schedule=schedule)
    assert [hazard.kind for hazard in run.hazards] == told
    assert all(hazard.lines == (4, 6) for hazard in run.hazards)
    assert told or run.output in ("ab", "b")


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("form", "text", "told", "steered"),
    [
        ("%s", "in + n", "", True),
        ("%s", "in + n + 1", "read out of bounds: in[8] (in has 8 elements)", True),
        ("%s", "in + n + 40", "read out of bounds: in[46] (in has 8 elements)", False),
        ("%s", "in - 1", "read out of bounds: in[-1] (in has 8 elements)", False),
        ("%.1s", "in + n + 1", "", True),
        ("%.2s", "in + n + 1", "read out of bounds: in[8] (in has 8 elements)", True),
        ("%s", "own", "", False),
        ("%s", "own + 4", "read out of bounds: shared own[8] (own has 8 elements)", False),
        ("%s", "&own[0]", "", True),
        ("%s", '"literal"', "", False),
    ],
)
def test_a_text_ends_within_its_array(
    form: str, text: str, told: str, steered: bool, build: str
) -> None:
    """And what ends it decides how far it is read."""
    value = "in[t]" if text.startswith("&") else "t == 3 ? 0 : 'x'"
    source = f"""#include <cstdio>
__global__ void k(const char* in, int n) {{
    __shared__ char own[8];
    int t = threadIdx.x;
    own[t] = {value};
    __syncthreads();
    if (t == 0) printf("{form}", {text});
}}"""
    kernel = Kernel.from_cuda(source, "k", build=build)
    given = np.array([65] * 6 + [0, 65], np.int8)
    run = simulator.launch(kernel, 1, 8, [given, 6])
    assert [hazard.message for hazard in run.hazards] == [told] * bool(told)
    assert run.holds_for_all_data is not steered

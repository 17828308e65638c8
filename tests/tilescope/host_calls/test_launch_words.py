"""A launch that a program made, as words of a command."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import Kernel
from kernels.arguments.texture import Texture
from simulator import Device
from tests.support.command_line import tilescope
from tilescope.host_calls.launch_words import launch_words

SOURCE = """
struct Pair { int a, b; };
__global__ void k(const float* in, unsigned char* out, int n, double by, bool on) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (on && i < n) out[i] = in[i] * by;
}
__global__ void textured(unsigned long long picture, float* out) { out[picture != 0] = 1; }
__global__ void other(Pair pair, Pair* out) { *out = pair; }
__global__ void wide(const Pair* in, float4* out) { out[in->a].x = in->b; }
"""


def words(name: str, *args: Any, **how: Any) -> tuple[str, ...]:
    """Return the words of a launch; a number of bytes stands for an allocation of so many."""
    device, kernel = Device(), Kernel.from_cuda(SOURCE, name)
    raws = [arg if isinstance(arg, bytes) else device.allocate(arg).address.to_bytes(8, "little")
            for arg in args]  # fmt: skip
    return launch_words(device, kernel, (2, 1, 1), (32, 2, 1), raws, 64, how)


def test_it_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three, half, one = (3).to_bytes(4, "little"), bytes(6) + b"\xe0\x3f", b"\x01"
    found = words("k", 256, 64, three, half, one)
    assert found == (
        "k", "--grid", "2", "--block", "32,2", "--shared", "64", "f32[64]=normal", "u8[64]", "3",
        "0.5", "1",
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("my.cu").write_text(SOURCE)
    typed = shlex.split(shlex.join(["check", "my.cu", *found]))
    assert tilescope(*typed).exit_code == 0


def test_structures_are_bytes_and_vectors_their_elements() -> None:
    assert words("wide", 24, 64)[-2:] == ("u8[24]", "f32[16]=normal")


def test_what_words_cannot_say_has_none() -> None:
    assert words("other", bytes(8), 8) == ()
    inside = (Device().allocate(64).address + 4).to_bytes(8, "little")
    rest = 64, bytes(4), bytes(8), bytes(1)
    assert words("k", inside, *rest) == ()
    assert words("k", 64, *rest, cluster=(2, 1, 1)) == ()


def test_a_handle_or_an_address_of_this_run_has_no_word() -> None:
    device, kernel = Device(), Kernel.from_cuda(SOURCE, "textured")
    made, out = device.allocate(64), device.allocate(8)
    texture = Texture(np.zeros(16, np.float32))
    handle = device.picture(made.number, texture)
    shape = (1, 1, 1), (1, 1, 1)
    for number, has_word in ((handle, False), (made.address + 4, False), (handle % 4096, True)):
        args = [one.to_bytes(8, "little") for one in (number, out.address)]
        assert bool(launch_words(device, kernel, *shape, args, 0, {})) == has_word

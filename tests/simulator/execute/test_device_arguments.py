"""What a launch on a ``Device`` reaches: memory that its parameters lead to, and no other."""

import gc

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Device
from simulator.execute.device_arguments import reached
from simulator.execute.prepare import prepare

SOURCE = """
struct Link { Link *next; float value; };
struct Job { const Link *links; float *out; };
extern "C" __global__ void plain(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void follow(Job job) {
  float sum = 0;
  for (const Link *link = job.links; link; link = link->next) sum += link->value;
  *job.out = sum;
}
extern "C" __global__ void halves(const unsigned *half, float *out) {
  *out = *(float *)((unsigned long long)half[1] << 32 | half[0]);
}
__device__ int count;
extern "C" __global__ void add() { atomicAdd(&count, 1); }
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return Kernel.from_cuda(SOURCE, "plain").ptx


def numbers(kernel: Kernel, device: Device, *args: object) -> list[int]:
    launch = prepare(kernel, 1, 1, args, 0, "lockstep", 1000, False, device=device)
    return reached(launch.arguments)


def test_memory_out_of_reach_is_left_out(ptx: str) -> None:
    device = Device()
    x, y, *others = (device.allocate(64) for _ in range(40))
    for one in others:
        one.array.view("<u8")[:] = x.address
    kernel = Kernel.from_ptx(ptx, "plain")
    assert numbers(kernel, device, x.address + 8, y.address) == [x.number, y.number]


def test_addresses_are_followed_from_structures_through_memory(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "follow"), Device()
    links, out = [device.allocate(16) for _ in range(3)], device.allocate(4)
    device.allocate(16)
    for link, after in zip(links, [*links[1:], None], strict=True):
        link.array.view("<u8")[0] = after.address if after else 0
        link.array.view(np.float32)[2] = 1.5
    job = np.array([links[0].address, out.address], np.uint64).tobytes()
    assert numbers(kernel, device, job) == [0, 1, 2, 3]
    assert simulator.launch(kernel, 1, 1, [job], device=device).hazards == []
    assert out.array.view(np.float32)[0] == 4.5


def test_an_address_made_of_halves_is_found_on_the_way(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "halves"), Device()
    half, out, target = device.allocate(8), device.allocate(4), device.allocate(4)
    half.array.view("<u8")[0] = target.address
    target.array.view(np.float32)[0] = 7
    for engine in ("numpy", "auto"):
        run = simulator.launch(
            kernel, 1, 1, [half.address, out.address], device=device, engine=engine
        )
        assert run.hazards == []
        assert out.array.view(np.float32)[0] == 7


def test_an_array_has_one_address_as_long_as_it_exists(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "plain"), Device()
    x, y = np.arange(8, dtype=np.float32), np.zeros((2, 4), np.float32)
    address = device.address_of(x)
    assert device.address_of(x[2:]) == address + 8
    simulator.launch(kernel, 1, 4, [x[1:5], y[1]], device=device)
    assert y.tolist() == [[0, 0, 0, 0], [1, 2, 3, 4]]
    assert device.address_of(x) == address
    (hazard,) = simulator.launch(kernel, 1, 12, [x, y], device=device).hazards[:1]
    assert (hazard.kind, hazard.variable) == ("out-of-bounds", "argument 0")
    del x, hazard
    gc.collect()
    assert device.find(address) is None
    assert device.freed_at(address) == "memory freed"


def test_modules_of_one_text_have_their_own_variables(ptx: str) -> None:
    import dataclasses

    device, kernel = Device(), Kernel.from_ptx(ptx, "add")
    for module, threads in ((1, 3), (2, 5), (1, 1)):
        simulator.launch(dataclasses.replace(kernel, module=module), 1, threads, [], device=device)
    counts = [device.module(ptx, n).arrays["count"].view(np.int32)[0] for n in (1, 2)]
    assert counts == [4, 5]


def test_a_snapshot_is_what_a_launch_was_given(ptx: str) -> None:
    device, kernel = Device(), Kernel.from_ptx(ptx, "plain")
    x, y = device.allocate(16), device.allocate(16)
    x.array.view(np.float32)[:] = [1, 2, 3, 4]
    y.array[:] = 0
    run = simulator.launch(kernel, 1, 4, [x.address, y.address], device=device, trace=True)
    assert run.trace is not None
    given = run.trace.given
    x.array[:] = 0
    before = given["device"].find(x.address)
    assert before.array.view(np.float32).tolist() == [1, 2, 3, 4]
    assert not given["device"].find(y.address).array.any()
    assert simulator.predict(kernel, 1, 4, gpu="h200", **given).time_ms > 0
    assert y.array.view(np.float32).tolist() == [1, 2, 3, 4]

"""``simulator.Device``: memory that outlives launches, and pointers kept in it."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Device
from simulator.launch import listen
from simulator.memory.storage.device import AddressesExhaustedError

SOURCE = """
struct Link { Link *next; float value; };
__device__ float total;
__device__ float *where = &total;
extern "C" __global__ void follow(const Link *link) {
  float sum = 0;
  for (; link; link = link->next) sum += link->value;
  *where += sum;
}
extern "C" __global__ void half(const float *x, float *y, int n) {
  if (threadIdx.x < n / 2) y[threadIdx.x] = x[threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return Kernel.from_cuda(SOURCE, "half").ptx


def test_pointers_in_memory_and_variables_mean_the_same_in_each_launch(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "follow"), Device()
    links = [device.allocate(16) for _ in range(3)]
    for link, after, value in zip(links, [*links[1:], None], (1, 2, 4), strict=True):
        link.array.view("<u8")[0] = after.address if after else 0
        link.array.view(np.float32)[2] = value
    for times in (1, 2):
        run = simulator.launch(kernel, 1, 1, [links[0].address], device=device)
        assert not run.hazards
        assert device.variables(ptx)["total"].view(np.float32)[0] == 7 * times


def test_what_a_launch_leaves_unset_is_unset_for_the_next(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "half"), Device()
    x, y = device.allocate(128), device.allocate(128)
    x.array[...] = 0
    args = [x.address, y.address.to_bytes(8, "little"), 32]
    for checks in ("none", "all"):
        with listen(lambda *_: None):
            assert not simulator.launch(kernel, 1, 32, args, checks=checks, device=device).hazards
        assert not y.array[:64].missing.any()
        assert y.array[64:].missing.all()
    (hazard,) = simulator.launch(kernel, 1, 32, [y.address, x.address, 64], device=device).hazards
    assert hazard.kind == "uninitialised"


def test_a_copy_is_a_device_of_its_own(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "follow"), Device()
    link, shared, unused = device.allocate(16), device.allocate(8, "managed"), device.allocate(8)
    link.array.view("<u8")[0], link.array.view(np.float32)[2] = 0, 5
    link.array[12:] = 0
    device.free(unused.address, "main.cu:9")
    simulator.launch(kernel, 1, 1, [link.address], device=device)
    copy = device.copy()
    assert not simulator.launch(kernel, 1, 1, [link.address], device=copy).hazards
    for one, total in ((device, 5), (copy, 10)):
        assert one.variables(ptx)["total"].view(np.float32)[0] == total
    assert copy.freed_at(unused.address) == "memory freed at main.cu:9"
    copy.allocations[shared.number].array[0] = 3
    copy.free(shared.address)  # no file of the original's is closed
    assert shared.array[0] == 0
    assert device.find(shared.address) is shared
    fresh = copy.allocate(64)
    assert fresh.array.missing.all()
    assert copy.copy().allocations[fresh.number].array.missing.all()


def test_freed_memory_is_out_of_bounds_and_says_where(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "half"), Device()
    x, y = device.allocate(128), device.allocate(128)
    x.array[...] = 0
    assert device.free(y.address, "main.cu:8") is y
    assert device.free(y.address) is None
    hazards = simulator.launch(kernel, 1, 32, [x.address, y.address, 32], device=device).hazards
    assert [h.variable for h in hazards] == ["memory freed at main.cu:8"]
    assert device.freed_at(y.address + 4) == "memory freed at main.cu:8"


def test_memory_that_is_not_touched_is_not_copied(
    ptx: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simulator.memory.storage import spaces

    kernel, device = Kernel.from_ptx(ptx, "half"), Device()
    x, y, other = device.allocate(128), device.allocate(128), device.allocate(1 << 20)
    x.array[...] = 0
    copied: list[int] = []
    real = spaces.copied
    monkeypatch.setattr(
        spaces, "copied", lambda content, size: copied.append(size) or real(content, size)
    )
    simulator.launch(kernel, 1, 32, [x.address, y.address, 32], device=device)
    assert max(copied) < other.nbytes


def test_a_trace_counts_elements_of_the_types_that_pointers_have() -> None:
    device = Device()
    x, y, links = device.allocate(128), device.allocate(128), device.allocate(48)
    x.array[...] = 0
    links.array[...] = 0
    half, follow = (Kernel.from_cuda(SOURCE, name) for name in ("half", "follow"))
    run = simulator.launch(half, 1, 32, [x.address, y.address + 64, 32], device=device, trace=True)
    maps = run.trace.maps
    assert [maps[a.number].dtype for a in (x, y)] == [np.float32] * 2
    assert maps[x.number].reads.tolist() == [1] * 16 + [0] * 16
    assert maps[y.number].writes.tolist() == [0] * 16 + [1] * 16
    run = simulator.launch(follow, 1, 1, [links.address], device=device, trace=True)
    found = run.trace.maps[links.number]
    assert (found.is_typed, found.size, found.shape) == (False, 1, (48,))


def test_parameters_are_bytes_or_numbers_of_their_size(ptx: str) -> None:
    kernel, device = Kernel.from_ptx(ptx, "half"), Device()
    for args, error in (
        ([1, 2], TypeError), ([1, 2, b"12345678"], ValueError), ([1, 2, "3"], TypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            simulator.launch(kernel, 1, 32, args, device=device)


def test_managed_memory_is_a_file_that_a_host_can_map() -> None:
    device = Device()
    made = device.allocate(100, "managed")
    assert made.file >= 0
    assert made.address < 1 << 47
    assert not made.array.any()
    assert device.find(made.address + 100) is made
    assert device.bytes_at(made.address + 96, 4).nbytes == 4
    assert device.bytes_at(made.address + 97, 4) is None
    numbers = {device.allocate(4, "pinned").number for _ in range(300)}
    assert len(numbers) == 300
    with pytest.raises(AddressesExhaustedError, match="1,376 managed and pinned allocations"):
        numbers |= {device.allocate(4, "pinned").number for _ in range(1377)}
    numbers = {*device.allocations} - {made.number}
    for number in numbers:
        device.free(device.allocations[number].address)


def test_the_hosts_own_addresses_are_never_freed_device_memory() -> None:
    """Linux puts heaps at 0x55.. (0xaaaa.. on aarch64) and mappings at 0x7f.. (0xffff..)."""
    device, own = Device(), np.zeros(8, np.uint8)
    made = [device.allocate(64) for _ in range(400)]
    for one in made:
        device.free(one.address)
    hosts = [
        0x5555_5555_8000,
        0x55D0_1234_5678,
        0x7F12_3456_7890,
        0xAAAA_C000_1000,
        own.ctypes.data,
    ]
    assert not any(device.freed_at(address) for address in hosts)
    assert device.freed_at(made[-1].address + 64)
    assert not device.freed_at(made[-1].address + 65)

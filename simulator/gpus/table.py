"""GPUs by name: what a multiprocessor holds, and how fast the chip computes and reads.

Limits of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability", and the rules of ``cuda_occupancy.h`` in the CUDA toolkit. Peaks and bandwidths:
NVIDIA's data sheet or white paper of each card, named in its row. L2 of the H200 is what its driver
reports.
"""

import difflib
import re
from dataclasses import dataclass

KIB = 1024


class UnknownGpu(ValueError):
    """No GPU of that name is in the table."""


@dataclass(frozen=True)
class Architecture:
    """Resources of a multiprocessor (SM) of a compute capability.

    Attributes:
        capability: Such as ``9.0``.
        threads: Resident threads, at most; ``blocks``: resident blocks.
        shared_bytes: Shared memory, at most; ``shared_per_block``: what a block may take.
        shared_reserved: Bytes that the system takes of it for each block.
        shared_unit: Bytes in which it is given out.
        carveouts: KiB that the driver can split off from L1 as shared memory.
        fp32_lanes: FP32 fused multiply-adds a cycle; ``fp64_lanes``: FP64.
        registers: 32-bit registers, a quarter of them in each of the four partitions.
        register_unit: Registers in which they are given to a warp.
    """

    capability: str
    threads: int
    blocks: int
    shared_bytes: int
    shared_per_block: int
    shared_reserved: int
    shared_unit: int
    carveouts: tuple[int, ...]
    fp32_lanes: int
    fp64_lanes: int
    registers: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256
    partitions: int = 4

    @property
    def l2_partitions(self) -> int:
        """Parts of L2, each beside half of the multiprocessors (A100 and H100 white papers)."""
        return 2 if self.capability in ("8.0", "9.0", "10.0") else 1

    @property
    def tensor_flops(self) -> int:
        """Dense operations a cycle of a multiprocessor's tensor cores on 16-bit floats."""
        return _TENSOR[self.capability]

    @property
    def warps(self) -> int:
        """Resident warps, at most."""
        return self.threads // 32


def _architecture(
    capability: str, threads: int, blocks: int, carveouts: tuple[int, ...], lanes: tuple[int, int]
) -> Architecture:
    """Return an architecture from 8.0 on: 1 KiB a block is reserved, units have 128 bytes."""
    largest = carveouts[-1]
    return Architecture(
        capability, threads, blocks, largest * KIB, (largest - 1) * KIB, KIB, 128, carveouts, *lanes
    )


_TENSOR = {
    "7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "10.0": 8192,
    "12.0": 1024,
}  # fmt: skip
"""By compute capability; white papers, "Tensor Core" tables."""
_SMALL = (0, 8, 16, 32, 64, 100)
_LARGE = (*_SMALL, 132, 164)
_HUGE = (*_LARGE, 196, 228)

ARCHITECTURES = {
    architecture.capability: architecture
    for architecture in (
        Architecture("7.0", 2048, 32, 96 * KIB, 96 * KIB, 0, 256, (0, 8, 16, 32, 64, 96), 64, 32),
        Architecture("7.5", 1024, 16, 64 * KIB, 64 * KIB, 0, 256, (32, 64), 64, 2),
        _architecture("8.0", 2048, 32, _LARGE, (64, 32)),
        _architecture("8.6", 1536, 16, _SMALL, (128, 2)),
        _architecture("8.9", 1536, 24, _SMALL, (128, 2)),
        _architecture("9.0", 2048, 32, _HUGE, (128, 64)),
        _architecture("10.0", 2048, 32, _HUGE, (128, 64)),
        _architecture("12.0", 1536, 24, _SMALL, (128, 2)),
    )
}
"""By compute capability. Lanes: the guide's "Arithmetic Instructions", results a cycle."""


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        key: What ``--gpu`` calls it.
        name: What NVIDIA calls it.
        capability: Its compute capability.
        sms: Multiprocessors.
        fp32: Peak of FP32 outside tensor cores, FLOP/s, an fma counted as two.
        bandwidth: Peak of its memory, bytes/s.
        l2: Bytes of L2.
        source: Where the last four stand.
    """

    key: str
    name: str
    capability: str
    sms: int
    fp32: float
    bandwidth: float
    l2: float
    source: str

    @property
    def architecture(self) -> Architecture:
        """Resources of each multiprocessor."""
        return ARCHITECTURES[self.capability]

    @property
    def clock(self) -> float:
        """Cycles a second at which the FP32 peak is reached."""
        return self.fp32 / (2 * self.sms * self.architecture.fp32_lanes)

    @property
    def fp64(self) -> float:
        """Peak of FP64 outside tensor cores, FLOP/s, from the ratio of lanes."""
        return self.fp32 * self.architecture.fp64_lanes / self.architecture.fp32_lanes

    @property
    def shared_bandwidth(self) -> float:
        """Bytes/s of shared memory: 32 banks, 4 bytes each, a cycle and multiprocessor."""
        return 128 * self.sms * self.clock

    @property
    def balance(self) -> float:
        """FLOP per byte of memory from which on FP32 arithmetic is the roof."""
        return self.fp32 / self.bandwidth


def _gpu(
    key: str,
    name: str,
    capability: str,
    sms: int,
    tflops: float,
    gbs: float,
    l2: float,
    source: str,
) -> Gpu:
    """From TFLOP/s, GB/s and MiB."""
    return Gpu(key, name, capability, sms, tflops * 1e12, gbs * 1e9, l2 * 2**20, source)


GPUS = {
    gpu.key: gpu
    for gpu in (
        _gpu("v100", "V100 SXM2", "7.0", 80, 15.7, 900, 6, "V100 data sheet"),
        _gpu("t4", "T4", "7.5", 40, 8.1, 320, 4, "T4 data sheet"),
        _gpu("a100", "A100 SXM 80 GB", "8.0", 108, 19.5, 2039, 40, "A100 data sheet"),
        _gpu("a100-40gb", "A100 SXM 40 GB", "8.0", 108, 19.5, 1555, 40, "A100 white paper"),
        _gpu("a10", "A10", "8.6", 72, 31.2, 600, 6, "A10 data sheet"),
        _gpu("rtx3090", "GeForce RTX 3090", "8.6", 82, 35.6, 936, 6, "GA102 white paper"),
        _gpu("l4", "L4", "8.9", 58, 30.3, 300, 48, "L4 data sheet"),
        _gpu("l40s", "L40S", "8.9", 142, 91.6, 864, 96, "L40S data sheet"),
        _gpu("rtx4090", "GeForce RTX 4090", "8.9", 128, 82.6, 1008, 72, "Ada white paper"),
        _gpu("h100", "H100 SXM", "9.0", 132, 67.0, 3350, 50, "H100 data sheet"),
        _gpu("h100-pcie", "H100 PCIe", "9.0", 114, 51.0, 2000, 50, "H100 data sheet"),
        _gpu("h200", "H200 SXM", "9.0", 132, 67.0, 4800, 60, "H200 data sheet"),
        _gpu("b200", "B200 (HGX)", "10.0", 148, 75.0, 7700, 126, "HGX B200 data sheet"),
        _gpu("rtx5090", "GeForce RTX 5090", "12.0", 170, 104.8, 1792, 96, "Blackwell white paper"),
    )
}
"""By the name that ``--gpu`` takes."""


_DRIVER_NAMES = {
    "h10080gbhbm3": "h100", "h100pcie": "h100-pcie", "a100-sxm4-80gb": "a100",
    "a100-sxm4-40gb": "a100-40gb", "v100-sxm2-16gb": "v100", "v100-sxm2-32gb": "v100",
}  # fmt: skip
"""What drivers call some of them, less the brand and blanks."""


def find(name: str) -> Gpu:
    """Return the GPU of that name; the driver's own names do as well, such as ``NVIDIA H200``.

    Raises:
        UnknownGpu: It is not in the table; the message lists what is.
    """
    plain = re.sub(r"nvidia|geforce|tesla|[\s_]", "", name.lower())
    gpu = GPUS.get(_DRIVER_NAMES.get(plain, plain))
    if gpu is not None:
        return gpu
    near = difflib.get_close_matches(plain, GPUS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UnknownGpu(f"no GPU {name!r} in the table; {hint}there are: {', '.join(GPUS)}")

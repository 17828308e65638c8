"""Occupancy held to Nsight Compute's readings, and to the rules by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.gpus.occupancy import occupancy
from simulator.gpus.table import ARCHITECTURES, GPUS, UnknownGpu, find

FOLDER = Path(__file__).parent.parent / "ground_truth"
READINGS: list[tuple[str, int, dict[str, int]]] = [
    (f"{case['name']} at {level}", case["block"][0] * case["block"][1] * case["block"][2],
     case[level]["counters"])
    for case in json.loads((FOLDER / "h200.json").read_text())
    for level in ("O0", "O4")
]  # fmt: skip
H200 = GPUS["h200"]


def limits(reading: tuple[str, int, dict[str, int]], carveout: int | None = None) -> Any:
    _, threads, counters = reading
    registers = counters["launch__registers_per_thread"]
    shared = counters["launch__shared_mem_per_block_static"]
    return occupancy(H200, threads, registers, shared, carveout)


@pytest.mark.parametrize(
    ("resource", "metric"), [("blocks", "blocks"), ("warps", "warps"), ("registers", "registers")]
)
def test_limits_equal_the_hardwares(resource: str, metric: str) -> None:
    assert len(READINGS) == 200
    for reading in READINGS:
        wanted = reading[2][f"launch__occupancy_limit_{metric}"]
        assert limits(reading).limits[resource] == wanted, reading[0]


def test_shared_memory_equals_the_hardwares_at_the_split_it_chose() -> None:
    """The driver chose how much of L1 to split off; the readings do not say how much.

    Whatever it chose never limited the launch, so the blocks that fit are those of the
    largest split, which CUDA's own calculation assumes as well.
    """
    for reading in READINGS:
        wanted = reading[2]["launch__occupancy_limit_shared_mem"]
        found = {
            size: limits(reading, size).limits["shared memory"]
            for size in H200.architecture.carveouts
        }
        assert wanted in found.values(), (reading[0], wanted, found)
        others = min(
            reading[2][f"launch__occupancy_limit_{name}"]
            for name in ("blocks", "warps", "registers")
        )
        assert limits(reading).blocks == min(others, wanted), reading[0]


@pytest.mark.parametrize(
    ("gpu", "threads", "registers", "shared", "blocks", "limiters"),
    [
        ("h200", 32, 16, 0, 32, {"blocks"}),
        ("h200", 256, 32, 0, 8, {"warps", "registers"}),
        ("h200", 256, 33, 0, 6, {"registers"}),  # 33 come as 40: 12 warps a partition
        ("h200", 256, 255, 0, 1, {"registers"}),
        ("h200", 1024, 65, 0, 0, {"registers"}),
        ("h200", 256, 256, 0, 0, {"registers"}),
        ("h200", 96, 168, 0, 4, {"registers"}),  # 3 warps a partition, 12 in all, 3 a block
        ("h200", 128, 32, 227 * 1024, 1, {"shared memory"}),
        ("h200", 128, 32, 227 * 1024 + 1, 0, {"shared memory"}),
        ("h200", 128, 32, 113 * 1024, 2, {"shared memory"}),
        ("h200", 128, 32, 113 * 1024 + 1, 1, {"shared memory"}),
        ("a100", 1024, 32, 0, 2, {"warps", "registers"}),
        ("rtx4090", 1024, 32, 0, 1, {"warps"}),
        ("rtx4090", 32, 32, 0, 24, {"blocks"}),
        ("rtx3090", 32, 32, 0, 16, {"blocks"}),
        ("t4", 256, 32, 32 * 1024, 2, {"shared memory"}),  # nothing is reserved before 8.0
        ("v100", 256, 32, 48 * 1024, 2, {"shared memory"}),
    ],
)
def test_by_hand(
    gpu: str, threads: int, registers: int, shared: int, blocks: int, limiters: set[str]
) -> None:
    found = occupancy(GPUS[gpu], threads, registers, shared)
    assert found.blocks == blocks
    assert set(found.limiters) == limiters
    assert found.warps == blocks * -(-threads // 32)
    assert found.complete


def test_unknown_registers_are_not_guessed() -> None:
    found = occupancy(H200, 256)
    assert found.limits["registers"] is None
    assert not found.complete
    assert found.blocks == 8  # an upper bound
    assert found.to_dict()["registers"] is None
    assert found.to_dict()["complete"] is False


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"threads": 0}, "one thread or more"),
        ({"registers": -1}, "registers a thread cannot be -1"),
        ({"shared_bytes": -1}, "shared memory cannot be -1"),
        ({"carveout": 7}, "splits off 0, 8, 16, 32, 64, 100, 132, 164, 196, 228 KiB, not 7"),
    ],
)
def test_numbers_that_cannot_be(changed: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        occupancy(H200, **({"threads": 32} | changed))


def test_names() -> None:
    assert find("H200").key == "h200"
    assert find("NVIDIA H200") is H200
    assert find("NVIDIA GeForce RTX 4090").key == "rtx4090"
    assert find("NVIDIA A100-SXM4-80GB").key == "a100"
    assert find("NVIDIA A100-SXM4-40GB").key == "a100-40gb"
    assert find("NVIDIA H100 80GB HBM3").key == "h100"
    assert find("NVIDIA H100 PCIe").key == "h100-pcie"
    assert find("Tesla V100-SXM2-32GB").key == "v100"
    with pytest.raises(UnknownGpu):  # another bandwidth than either A100 of the table
        find("NVIDIA A100-PCIE-40GB")
    with pytest.raises(UnknownGpu, match="did you mean h100"):
        find("h101")
    with pytest.raises(UnknownGpu, match="there are: v100, t4"):
        find("")


@pytest.mark.parametrize("gpu", GPUS.values(), ids=list(GPUS))
def test_the_table_agrees_with_itself(gpu: Any) -> None:
    """Peaks, multiprocessors and lanes give a clock that such a chip can have."""
    assert gpu.architecture is ARCHITECTURES[gpu.capability]
    assert 1.2e9 < gpu.clock < 2.7e9
    assert gpu.architecture.shared_bytes == gpu.architecture.carveouts[-1] * 1024
    assert gpu.architecture.warps * 32 == gpu.architecture.threads
    assert gpu.source


def test_the_documentation_knows_the_table() -> None:
    text = " ".join((FOLDER.parent.parent / "docs" / "device.md").read_text().split())
    assert f"The table knows {', '.join(list(GPUS)[:-1])} and {list(GPUS)[-1]} (" in text

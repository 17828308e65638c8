"""Every library kernel computes what its reference says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernels
import simulator
from kernels import KernelError, library
from kernels.library import Expected, Launch
from kernels.library.matmul import product
from tests.support.launches import run_library as run

SIZES = {
    "matmul_naive_square": [(1, 1, 1), (37, 37, 37), (64, 64, 64)],
    "matmul_tiled_exact": [(16, 16, 16), (64, 64, 64)],
    "matmul_vectorised": [(64, 48, 32), (70, 52, 92), (1, 4, 4), (33, 4, 36)],
    "matmul_tiled_wrong_guard": [(64, 32, 50), (32, 64, 1)],
    "matmul_register_tiled": [(70, 50, 90), (1, 1, 1), (5, 33, 17)],
    "matmul_warp_tiled": [(70, 50, 90), (1, 1, 1)],
    "matmul_tensor": [(70, 56, 72), (1, 8, 8)],
    "matmul_wgmma": [(70, 136, 200), (1, 8, 8)],
    "matmul_missing_first_barrier": [(5, 33, 17)],
    "matmul_missing_second_barrier": [(5, 33, 17)],
}
BY_AXES = {
    ("M", "N", "K"): [(64, 48, 32), (70, 50, 37), (1, 1, 1), (5, 33, 17), (100, 3, 34)],
    ("M", "N"): [(1, 1), (32, 32), (33, 70), (5, 100), (100, 3), (17, 257)],
    ("N",): [(1,), (31,), (256,), (257,), (1000,), (2049,)],
}
CASES = [
    (name, tile)
    for name in library.names()
    if not name.startswith("faulty_")
    for tile in library.get(name).tiles or (None,)
]
ALL = 9
RUNS = [
    *((name, tile, "device", ALL) for name, tile in CASES),
    # Of the source's build one tile, and two sizes; the others are slow, and much the same.
    *((name, (library.get(name).tiles or (None,))[0], "source", 2) for name in dict(CASES)),
    *(pytest.param(*case, "source", ALL, marks=pytest.mark.slow) for case in CASES),
]


@pytest.mark.slow_cases(
    "...128-device-9", "...64-device-9", "...64-source-2", "attention-None-device-9",
    "attention-None-source-2", "histogram_cluster-None-device-9", "histogram_cluster-None-source-2",
    "matmul_async_copy-8-device-9", "matmul_async_copy-8-source-2",
    "matmul_missing_first_barrier-32-device-9", "matmul_tensor-32-device-9",
    "matmul_tensor-32-source-2", "matmul_tiled-4-device-9", "matmul_vectorised-32-device-9",
    "matmul_vectorised-8-source-2", "matmul_warp_tiled-None-device-9",
    "matmul_warp_tiled-None-source-2", "reduction_atomic-None-source-2",
    "scan_look_back-None-source-2", "sort_bitonic-None-device-9", "spmv_thread-None-device-9",
)  # fmt: skip
@pytest.mark.parametrize(("name", "tile", "build", "sizes"), RUNS)
def test_equals_the_reference(name: str, tile: int | None, build: str, sizes: int) -> None:
    for size in (SIZES.get(name) or BY_AXES[library.get(name).axes])[:sizes]:
        result, right = run(name, size, tile, build)
        assert right, size
        assert result.hazards == [] or library.get(name).twin, size
        assert result.build == build


@pytest.mark.slow_cases("matmul_missing_first_barrier")
@pytest.mark.parametrize("name", [n for n in library.names() if n.startswith("matmul_missing")])
def test_a_racy_kernel_goes_wrong_in_some_schedule(name: str) -> None:
    size = (32, 32, 32)
    assert run(name, size, schedule="lockstep")[1]
    assert not run(name, size, schedule="warps")[1]
    assert run(library.get(name).twin, size, schedule="warps")[1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(70, 64, 64), (64, 70, 64)])
def test_the_wrong_guard_goes_wrong_at_an_edge(size: tuple[int, ...]) -> None:
    assert not run("matmul_tiled_wrong_guard", size)[1]
    assert run("matmul_tiled", size)[1]


def test_every_source_belongs_to_a_kernel() -> None:
    root = Path(kernels.__file__).parent
    assert {library.get(name).path for name in library.names()} == set(root.glob("library/*/*.cu"))


@pytest.mark.slow
def test_a_seed_repeats_itself() -> None:
    """In a kernel whose result is the schedule's."""
    entry = library.get("matmul_missing_first_barrier")
    found = []
    for seed in (3, 3, 4, 5, 6):
        made = entry.launch((16, 16, 16), rng=np.random.default_rng(0))
        run = simulator.launch(entry.kernel(), made.grid, made.block, made.args, schedule=seed)
        found.append((made.args[2].tobytes(), [str(hazard) for hazard in run.hazards]))
    assert found[0] == found[1]
    assert len({bits for bits, _ in found}) > 1


# -- the description --------------------------------------------------------------------


def test_sizes() -> None:
    entry = library.get("matmul_tiled")
    assert entry.parse_size("70x50x90") == (70, 50, 90)
    assert entry.parse_size("64") == (64, 64, 64)
    for wrong in ("", "x", "3x", "3x4", "1x2x3x4", "-3", "1.5", "0", "3x0x4", "ax1x1"):
        with pytest.raises(ValueError, match=r"MxNxK|or more, not 0"):
            entry.parse_size(wrong)
    assert library.get("scan_blelloch").parse_size("77") == (77,)
    with pytest.raises(ValueError, match="takes a size as in N, not 2 numbers"):
        library.get("scan_blelloch").parse_size("7x7")


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("matmul_naive_square", (3, 4, 3), "M = N = K, not 3x4x3"),
        ("matmul_tiled_exact", (24, 24, 24), "multiple of 16, not 24"),
        ("matmul_vectorised", (8, 6, 8), "N must be a multiple of 4, not 6"),
        ("matmul_vectorised", (8, 8, 6), "K must be a multiple of 4, not 6"),
        ("matmul_tensor", (8, 8, 12), "K must be a multiple of 8, not 12"),
        ("matmul_wgmma", (8, 12, 8), "N must be a multiple of 8, not 12"),
    ],
)
def test_restrictions_are_named(name: str, size: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        library.get(name).launch(size)


def test_unknown_names_and_tiles() -> None:
    with pytest.raises(KernelError, match="did you mean matmul_tiled"):
        library.get("matmul_tield")
    with pytest.raises(ValueError, match="no tile of 7; there are: 2, 4, 8, 16, 32"):
        library.get("matmul_tiled").launch(tile=7)
    with pytest.raises(ValueError, match="no tile to choose"):
        library.get("matmul_tiled_exact").launch(tile=8)


def test_inputs_follow_the_generator() -> None:
    entry = library.get("matmul_tiled")
    first, again, other = (entry.launch(rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.args[0], again.args[0])
    assert not np.array_equal(first.args[0], other.args[0])


def test_the_comparison_sees_every_kind_of_wrong() -> None:
    values = np.array([1.0, np.nan, np.inf, 0.0])
    launch = Launch((1,), (1,), [values.astype(np.float32)], {"x": 0}, lambda args: {})

    def within(value: Any, bound: float = 0.0) -> bool:
        return launch.compare({"x": Expected(np.array(value), np.full(4, bound))})[0].within

    assert within(values)
    assert not within([1.0, 0.0, np.inf, 0.0], 1.0)
    assert not within([1.0, np.nan, -np.inf, 0.0], 1.0)
    assert not within([1.0, np.nan, 5.0, 0.0], 1.0)
    assert within([1.5, np.nan, np.inf, 0.25], 0.5)
    assert not within([1.5, np.nan, np.inf, 0.25], 0.4)


def test_the_bound_is_tight_enough_to_see_a_missing_term() -> None:
    a, b = (np.random.default_rng(0).standard_normal((64, 64), np.float32) for _ in range(2))
    expected = product([a, b])["C"]
    short = a[:, :-1].astype(np.float64) @ b[:-1].astype(np.float64)
    assert (np.abs(short - expected.value) > expected.bound).mean() > 0.99

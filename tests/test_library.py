"""Every library kernel computes what its reference says, and counts what the posts claim."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernels
import simulator
from kernels import KernelError, library
from kernels.library import Expected, Launch
from kernels.matmul import product

SIZES = {
    "matmul_naive_square": [(1, 1, 1), (37, 37, 37), (64, 64, 64)],
    "matmul_tiled_exact": [(16, 16, 16), (64, 64, 64)],
    "matmul_vectorised": [(64, 48, 32), (70, 52, 92), (1, 4, 4), (33, 4, 36)],
    "matmul_tiled_wrong_guard": [(64, 32, 50), (32, 64, 1)],
    "matmul_register_tiled": [(70, 50, 90), (1, 1, 1), (5, 33, 17)],
    "matmul_warp_tiled": [(70, 50, 90), (1, 1, 1)],
    "matmul_tensor": [(70, 56, 72), (1, 8, 8)],
    "matmul_missing_first_barrier": [(5, 33, 17)],
    "matmul_missing_second_barrier": [(5, 33, 17)],
}
BY_AXES = {
    ("M", "N", "K"): [(64, 48, 32), (70, 50, 90), (1, 1, 1), (5, 33, 17), (100, 3, 65)],
    ("M", "N"): [(1, 1), (32, 32), (33, 70), (5, 100), (100, 3), (17, 257)],
    ("N",): [(1,), (31,), (256,), (257,), (1000,), (2049,)],
}
CASES = [
    (name, tile, build)
    for name in library.names()
    if not name.startswith("faulty_")
    for tile in library.get(name).tiles or (None,)
    for build in ("device", "source")
]


def run(
    name: str, size: tuple[int, ...], tile: int | None = None, build: str = "device", **options: Any
) -> tuple[simulator.Run, bool]:
    """A run of a library kernel, and whether its outputs were right."""
    entry = library.get(name)
    launch = entry.launch(size, tile)
    expected = launch.expected()
    kernel = entry.kernel(tile, build=build)
    result = simulator.launch(kernel, launch.grid, launch.block, launch.args, **options)
    return result, all(output.within for output in launch.compare(expected))


@pytest.mark.parametrize(("name", "tile", "build"), CASES)
def test_equals_the_reference(name: str, tile: int | None, build: str) -> None:
    for size in SIZES.get(name) or BY_AXES[library.get(name).axes]:
        result, right = run(name, size, tile, build)
        assert right, size
        assert result.hazards == [] or library.get(name).twin, size
        assert result.build == build


@pytest.mark.parametrize("name", [n for n in library.names() if n.startswith("matmul_missing")])
def test_a_racy_kernel_goes_wrong_in_some_schedule(name: str) -> None:
    size = (32, 32, 32)
    assert run(name, size, schedule="lockstep")[1]
    assert not run(name, size, schedule="warps")[1]
    assert run(library.get(name).twin, size, schedule="warps")[1]


@pytest.mark.parametrize("size", [(70, 64, 64), (64, 70, 64)])
def test_the_wrong_guard_goes_wrong_at_an_edge(size: tuple[int, ...]) -> None:
    assert not run("matmul_tiled_wrong_guard", size)[1]
    assert run("matmul_tiled", size)[1]


def test_every_source_belongs_to_a_kernel() -> None:
    root = Path(kernels.__file__).parent
    assert {library.get(name).path for name in library.names()} == set(root.glob("*/*.cu"))


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


# -- the posts' claims ------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 50, 90), (5, 33, 17)])
def test_naive_loads_2mnk(m: int, n: int, k: int) -> None:
    for name in ("matmul_naive", "matmul_naive_strided"):
        counters = run(name, (m, n, k))[0].counters
        assert counters.global_load.accesses == 2 * m * n * k
        assert counters.global_store.accesses == m * n
        assert counters.flops == 2 * m * n * k


@pytest.mark.parametrize("tile", [8, 16, 32])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 50, 90), (5, 33, 17)])
def test_tiled_loads_each_matrix_once_for_each_block_across(
    m: int, n: int, k: int, tile: int
) -> None:
    blocks_x, blocks_y, phases = (math.ceil(size / tile) for size in (n, m, k))
    for name in ("matmul_tiled", "matmul_double_buffered", "matmul_padded"):
        result = run(name, (m, n, k), tile)[0]
        loads = result.counters.global_load.accesses
        assert loads == m * k * blocks_x + k * n * blocks_y
        threads = blocks_x * blocks_y * tile * tile
        assert result.counters.shared_load.accesses == threads * phases * 2 * tile
        assert result.counters.shared_store.accesses == threads * phases * 2


@pytest.mark.parametrize("tile", [8, 16, 32])
def test_tiling_saves_a_factor_of_tile(tile: int) -> None:
    result = run("matmul_tiled", (128, 64, 96), tile)[0]
    naive = run("matmul_naive", (128, 64, 96), tile)[0]
    loads = result.counters.global_load
    assert naive.counters.global_load.accesses == tile * loads.accesses
    assert result.counters.flops / loads.bytes == tile / 4
    assert naive.counters.flops / naive.counters.global_load.bytes == 0.25
    assert result.shared_bytes == 2 * tile * tile * 4


def test_a_tile_of_64_does_not_fit_a_block() -> None:
    entry = library.get("matmul_tiled")
    launch = entry.launch((64, 64, 64))
    with pytest.raises(simulator.LaunchError, match="4096 threads"):
        simulator.launch(entry.kernel(), (1, 1), (64, 64), launch.args)


def test_naive_is_coalesced_along_columns_and_not_along_rows() -> None:
    along = run("matmul_naive", (64, 64, 64), 32)[0].counters
    down = run("matmul_naive_strided", (64, 64, 64), 32)[0].counters
    # A warp's A is one element (1 sector) and its B 32 neighbours (4); or 32 rows and 1.
    assert along.global_load.sectors_per_request == (1 + 4) / 2
    assert down.global_load.sectors_per_request == (32 + 1) / 2
    assert along.global_store.coalescing == 1.0
    assert down.global_store.sectors_per_request == 32


def test_padding_removes_the_bank_conflicts() -> None:
    plain = run("matmul_transposed", (64, 64, 64), 32)[0].counters
    padded = run("matmul_padded", (64, 64, 64), 32)[0].counters
    # Half of the requests, those to B's tile, take 32 wavefronts.
    assert plain.shared_load.bank_conflicts == 31 * plain.shared_load.requests // 2
    assert plain.shared_store.bank_conflicts == 31 * plain.shared_store.requests // 2
    assert padded.shared_load.requests == plain.shared_load.requests
    assert padded.bank_conflicts == 0


def test_vectors_take_a_quarter_of_the_requests() -> None:
    tiled = run("matmul_tiled", (64, 64, 64), 32)[0].counters
    vectors = run("matmul_vectorised", (64, 64, 64), 32)[0].counters
    assert vectors.global_load.bytes == tiled.global_load.bytes
    assert 4 * vectors.global_load.requests == tiled.global_load.requests
    assert 4 * vectors.global_store.requests == tiled.global_store.requests


@pytest.mark.parametrize("tile", [64, 128])
def test_registers_save_shared_loads(tile: int) -> None:
    counters = run("matmul_register_tiled", (128, 128, 32), tile)[0].counters
    outputs = (tile // 16) ** 2
    vectors = 2 * tile // 16 // 4
    assert counters.shared_load.accesses * outputs == vectors * 128 * 128 * 32


def test_tensor_cores_count_their_flops_and_fragments_have_no_bank_conflicts() -> None:
    for tile in (32, 64, 128):
        counters = run("matmul_tensor", (128, 128, 64), tile)[0].counters
        assert counters.flops == 2 * 128 * 128 * 64
        assert counters.bank_conflicts == 0


def test_copies_pass_no_registers() -> None:
    double, copied = (run(f"matmul_{n}", (64,) * 3)[0] for n in ("double_buffered", "async_copy"))
    assert copied.counters.shared_store.requests == double.counters.shared_store.requests
    assert copied.counters.shared_load.requests == double.counters.shared_load.requests


def test_double_buffering_halves_the_barriers() -> None:
    tiled, double = (run(f"matmul_{n}", (64,) * 3)[0] for n in ("tiled", "double_buffered"))
    assert double.counters.barriers * 2 == tiled.counters.barriers


# -- what each family is there to show ------------------------------------------------------


def counters(name: str, size: tuple[int, ...]) -> Any:
    return run(name, size)[0].counters


def test_tiles_coalesce_both_sides_of_a_transpose() -> None:
    naive, tiled, padded = (
        counters(f"transpose_{variant}", (256, 256)) for variant in ("naive", "tiled", "padded")
    )
    requests = 256 * 256 // 32
    assert naive.global_load.sectors_per_request == 4
    assert naive.global_store.sectors_per_request == 32
    assert tiled.global_store.sectors_per_request == padded.global_store.sectors_per_request == 4
    assert tiled.shared_load.bank_conflicts == 31 * requests
    assert padded.bank_conflicts == 0


def test_shuffles_save_shared_memory() -> None:
    n = 1 << 14
    tree, shuffle = counters("reduction_shared", (n,)), counters("reduction_shuffle", (n,))
    assert shuffle.shared_store.accesses == n // 32
    assert tree.shared_store.accesses == n + (n - n // 256)
    assert shuffle.barriers < tree.barriers


def test_blelloch_adds_less() -> None:
    n = 1 << 12
    steps, tree = counters("scan_hillis_steele", (n,)), counters("scan_blelloch", (n,))
    assert tree.shared_store.accesses < steps.shared_store.accesses / 2


def test_private_bins_save_global_atomics() -> None:
    n = 1 << 16
    alone, private = counters("histogram_global", (n,)), counters("histogram_shared", (n,))
    assert alone.global_atomic.accesses == n
    assert private.shared_atomic.accesses == n
    assert private.global_atomic.accesses <= 256 * -(-n // 2048)


def test_stencils_load_each_input_once_but_for_the_halo() -> None:
    n = 1 << 12
    blocks = n // 128
    assert counters("stencil_line", (n,)).global_load.accesses == n + 2 * 3 * (blocks - 1)
    plane = counters("stencil_five_point", (64, 64))
    assert plane.global_load.accesses == 64 * 64 + 2 * 64 * 2 * 3


def test_softmax_reads_its_row_three_times() -> None:
    assert counters("softmax_rows", (64, 200)).global_load.accesses == 3 * 64 * 200


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

"""What the library's kernels count: what the posts claim, and what each family is there to show."""

import math
from typing import Any

import pytest

import simulator
from kernels import library
from tests.support.launches import run_library as run

# -- the posts' claims ------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 50, 90), (5, 33, 17)])
def test_naive_loads_2mnk(m: int, n: int, k: int) -> None:
    for name in ("matmul_naive", "matmul_naive_strided"):
        counters = run(name, (m, n, k))[0].counters
        assert counters.global_load.accesses == 2 * m * n * k
        assert counters.global_store.accesses == m * n
        assert counters.flops == 2 * m * n * k


@pytest.mark.slow_cases("64-64-64-32")
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


@pytest.mark.slow_cases("128")
@pytest.mark.parametrize("tile", [64, 128])
def test_registers_save_shared_loads(tile: int) -> None:
    counters = run("matmul_register_tiled", (128, 128, 32), tile)[0].counters
    outputs = (tile // 16) ** 2
    vectors = 2 * tile // 16 // 4
    assert counters.shared_load.accesses * outputs == vectors * 128 * 128 * 32


@pytest.mark.slow
def test_tensor_cores_count_their_flops_and_fragments_have_no_bank_conflicts() -> None:
    for tile in (32, 64, 128):
        counters = run("matmul_tensor", (128, 128, 128), tile)[0].counters
        assert counters.flops == 2 * 128 * 128 * 128
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


def test_a_convolution_fetches_each_input_once_a_tile() -> None:
    found = counters("convolution", (64, 64))
    assert found.global_load.accesses == (64 + 2 * 2 * 3) ** 2 + 4 * 4 * 25
    assert found.flops == 2 * 25 * 64 * 64


def test_a_bitonic_sort_compares_whatever_the_keys_are() -> None:
    n, rounds = 1 << 12, 8 * 9 // 2
    found = counters("sort_bitonic", (n,))
    assert found.shared_load.accesses == n * rounds + n
    assert found.barriers == 4 * n // 256 * (rounds + 1)  # four warps


def test_a_warp_a_row_coalesces() -> None:
    thread, warp = counters("spmv_thread", (256, 256)), counters("spmv_warp", (256, 256))
    assert warp.global_load.sectors < thread.global_load.sectors / 2


def test_a_look_back_reads_its_input_once() -> None:
    assert counters("scan_look_back", (1 << 12,)).global_load.accesses == 1 << 12

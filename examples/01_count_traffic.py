"""Count the loads of a matrix product, and hold them to the textbook's formulas.

Naive: each of the M*N outputs needs K numbers of A and K of B: 2*M*N*K loads. Tiled: A is
loaded once for each column of blocks and B once for each row of them. With M and N multiples
of TILE that is 2*M*N*K / TILE; at a ragged edge a block still loads all that lies inside.
"""

import simulator
from kernels import library


def count(name: str, size: tuple[int, ...], tile: int) -> int:
    """Global loads that the simulator counts, by thread."""
    entry = library.get(name)
    launch = entry.launch(size, tile)
    expected = launch.expected()
    run = simulator.launch(entry.kernel(tile), launch.grid, launch.block, launch.args)
    assert all(output.within for output in launch.compare(expected)), "a wrong product"
    return run.counters.global_load.accesses


print(f"{'M x N x K':>15}  tile       naive       tiled   fewer   2MNK/TILE")
for m, n, k in ((64, 64, 64), (128, 128, 128), (256, 128, 64), (70, 50, 90), (33, 65, 17)):
    for tile in (8, 16, 32):
        naive = count("matmul_naive", (m, n, k), tile)
        tiled = count("matmul_tiled", (m, n, k), tile)
        blocks_x, blocks_y = -(-n // tile), -(-m // tile)
        assert naive == 2 * m * n * k
        assert tiled == m * k * blocks_x + k * n * blocks_y
        if m % tile == n % tile == 0:
            assert tiled == naive // tile
        counts = f"{naive:10,}  {tiled:10,}  {naive / tiled:5.1f}x  {naive / tile:10,.0f}"
        print(f"{f'{m} x {n} x {k}':>15}  {tile:4}  {counts}")
print("every count equals its formula")

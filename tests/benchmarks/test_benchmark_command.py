"""What ``python -m benchmarks`` measures: a case in a fresh process; all of them can be made."""

import numpy as np
import pytest

from benchmarks.cases import CASES
from benchmarks.measure import WAYS, figures


def test_names_are_told_apart() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 30


def test_figures() -> None:
    found = figures("matmul_tiled 64", "device", "bare", 1)
    assert found.work == 64**3
    assert found.arrays == 3 * 4 * 64**2
    assert 0 < found.warm < found.first
    assert found.peak > found.arrays
    assert set(WAYS) == {"all", "counted", "checked", "bare"}


@pytest.mark.slow
def test_own_kernels_do_what_they_are_called() -> None:
    """Of the smaller ones, by what they leave."""
    import simulator

    cases = {case.name: case for case in CASES}
    for name in ("BFS level 2^18", "local arrays 2^14", "one counter 2^20"):
        case = cases[name]
        shape = case.shape()
        before = [np.array(a) for a in shape.args]
        simulator.launch(
            case.kernel("device"), shape.grid, shape.block, shape.args, checks="none",
            counters="none",
        )  # fmt: skip
        if name.startswith("BFS"):
            begin, edges, level, after, now = before
            begins = np.flatnonzero(level == now)
            next_ones = [edges[begin[node] : begin[node + 1]] for node in begins]
            new = np.unique(np.concatenate(next_ones))
            after[new[level[new] < 0]] = now + 1
            assert (shape.args[3] == after).all()
        elif name.startswith("local"):
            assert (shape.args[0] == np.sort(before[0].reshape(-1, 16)).reshape(-1)).all()
        else:
            assert shape.args[0].tolist() == [1 << 20]

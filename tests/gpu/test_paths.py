"""One body of properties, two paths: the simulator, and simulator and device.

Every kernel of the library, shapes with ragged edges, every tile, and data with NaN,
infinities, subnormals, signed zeros and all magnitudes: NumPy's reference, the simulator under
every schedule and the GPU must agree. ``TILESCOPE_EXAMPLES`` sets how many examples each kernel
gets; the session's last lines say how many were bit for bit the same on a GPU.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import device
import simulator
from device.promises import ATOMICS, unpromised
from kernels import Kernel, library
from kernels.arguments.argument_copies import copies
from kernels.arguments.tensor_map import array_of
from kernels.library import Launch, LibraryKernel
from tilescope.strategies import ragged_sizes, schedules, special_values

EXAMPLES = int(os.environ.get("TILESCOPE_EXAMPLES", "0"))
NAMES = [
    name for name in library.names()
    if not library.get(name).racy and not library.get(name).twin
]  # fmt: skip
TINY = [value for value in special_values() if not np.abs(value) > 4]
"""Without the largest numbers, whose sums overflow in one order and not in another."""
INFINITE = [np.float32(np.inf), np.float32(-np.inf)]

Path = Callable[[Kernel, Launch, str, "Counter[str]", "str | int"], None]


def on_simulator(
    kernel: Kernel, launch: Launch, content: str, score: Counter[str], drawn: str | int
) -> None:
    """No hazard, and NumPy's result, the same bits under every schedule.

    But for the order of atomic additions of floats, which is left to the schedule.
    """
    given = copies(launch.args)
    expected = launch.expected()
    bits = set()
    for schedule in ("lockstep", drawn):
        launch.args[:] = copies(given)
        run = simulator.launch(
            kernel, launch.grid, launch.block, launch.args, launch.shared_bytes, schedule=schedule
        )
        assert run.hazards == []
        assert run.schedule == str(schedule)
        if content != "wild":
            wrong = [output for output in launch.compare(expected) if not output.within]
            assert wrong == []
        bits.add(b"".join(launch.args[place].tobytes() for place in launch.outputs.values()))
    assert len(bits) == 1 or ATOMICS in unpromised(kernel.ptx, False)


def on_both(
    kernel: Kernel, launch: Launch, content: str, score: Counter[str], drawn: str | int
) -> None:
    """The same bits where PTX promises bits, NumPy's result within its bound everywhere."""
    expected = launch.expected()
    by_place = {place: expected[name] for name, place in launch.outputs.items()}
    result = device.validate(
        kernel, launch.grid, launch.block, launch.args,
        None if content == "wild" else lambda *args: by_place, launch.shared_bytes,
    )  # fmt: skip
    assert result.run.hazards == []
    if result.bits_promised:
        assert result.validated, result.reason
        assert result.bit_for_bit
        score["bit for bit"] += 1
        score["special"] += content != "usual"
    elif content != "wild":  # there is no bound for numbers whose sums overflow on the way
        assert result.validated, result.reason
        score["within bounds"] += 1
        score["within bounds, same bits"] += result.bit_for_bit


PATHS = [
    pytest.param(on_simulator, id="simulator"),
    pytest.param(on_both, id="simulator and device", marks=pytest.mark.gpu),
]


def _row(name: str, place: int, path: Any) -> Any:
    later = path.id == "simulator" and place % 4 > 0
    marks = [*path.marks, pytest.mark.slow] if later else path.marks
    return pytest.param(name, *path.values, id=f"{name}-{path.id}", marks=marks)


ROWS = [_row(name, place, path) for place, name in enumerate(NAMES) for path in PATHS]
"""On the simulator every fourth at first: ``tests/kernels/library/test_library.py`` has sizes of
each."""


def drawn_launch(data: st.DataObject, entry: LibraryKernel, tile: int | None, path: Path) -> Launch:
    """A small launch: any size that the kernel takes."""
    family = entry.name.partition("_")[0]
    small = 100 if path is on_both else 40
    most = {"matmul": small, "attention": small, "convolution": small, "sort": 600, "faulty": 6}
    limit = most.get(family, 3000 if len(entry.axes) == 1 else 120)
    sizes = ragged_sizes(tile or 32, limit, min_size=1)
    size = tuple(data.draw(sizes, label=axis) for axis in entry.axes)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    try:
        return entry.launch(size, tile, rng)
    except ValueError:  # square, or in multiples of four or sixteen, is what it takes
        return entry.launch((-(-size[0] // 16) * 16,) * len(size), tile, rng)


def fill(data: st.DataObject, launch: Launch, content: str) -> None:
    """Put special, wild or equal values into the inputs, in place."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="content"))
    outputs = set(launch.outputs.values())
    for place, array in enumerate(map(array_of, launch.args)):
        if not isinstance(array, np.ndarray) or not array.flags.writeable or place in outputs:
            continue
        if not array.size:
            continue
        if content == "equal":
            array[...] = array.flat[0]
        elif array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            array[...] = rng.integers(
                limits.min, limits.max, array.shape, array.dtype, endpoint=True
            )
        elif content == "wild":
            bits = np.frombuffer(rng.bytes(array.nbytes), array.dtype)
            array[...] = bits.reshape(array.shape)  # every pattern, NaNs with payloads too
        else:
            share = data.draw(st.sampled_from([0.002, 0.05, 0.6]), label="share")
            values = TINY + INFINITE if data.draw(st.booleans(), label="infinite") else TINY
            chosen = rng.random(array.shape) < share
            array[chosen] = rng.choice(np.array(values, array.dtype), np.count_nonzero(chosen))


@pytest.mark.slow_cases(
    "attention-simulator", "faulty_missing_cluster_barrier_fixed-simulator",
    "histogram_cluster-simulator", "matmul_naive_strided-simulator", "matmul_padded-simulator",
    "matmul_warp_tiled-simulator", "reduction_shared-simulator", "scan_blelloch-simulator",
    "spmv_thread-simulator",
)  # fmt: skip
@pytest.mark.parametrize(("name", "path"), ROWS)
def test_numpy_simulator_device(
    name: str, path: Path, score: Counter[str], request: pytest.FixtureRequest
) -> None:
    if path is on_both:
        request.getfixturevalue("gpu")
    entry = library.get(name)
    twin = name.startswith("faulty")  # these hold their own inputs
    examples = EXAMPLES or (40 if path is on_both else 2 if twin else 3 if "matmul" in name else 4)

    # The source build of tiles in registers takes seconds a launch.
    one = path is on_both or name in ("matmul_register_tiled", "matmul_warp_tiled")
    builds = ["device"] if one else ["device", "source"]

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(st.data())
    def check(data: st.DataObject) -> None:
        tile = data.draw(st.sampled_from(entry.tiles), label="tile") if entry.tiles else None
        launch = drawn_launch(data, entry, tile, path)
        content = data.draw(st.sampled_from(["usual", "special", "wild", "equal"]), label="kind")
        if content != "usual" and not twin:
            fill(data, launch, content)
        build = data.draw(st.sampled_from(builds), label="build")
        schedule = data.draw(schedules(), label="schedule")
        with np.errstate(all="ignore"):
            path(entry.kernel(tile, build=build), launch, content, score, schedule)

    check()


def test_the_library_is_whole() -> None:
    """The kernels left out race, or are faulty twins; nothing else is."""
    left = set(library.names()) - set(NAMES)
    assert all(library.get(name).racy or library.get(name).twin for name in left)
    assert sum(name.startswith("matmul_") for name in NAMES) == 14


def test_special_values_come_up() -> None:
    """NaN, infinities, subnormals and signed zeros are in the values to draw from."""
    values = np.array(TINY + INFINITE)
    assert np.isnan(values).any()
    assert np.isinf(values).sum() == 2
    assert ((values != 0) & (np.abs(values) < np.finfo(np.float32).tiny)).any()
    assert (np.signbit(values) & (values == 0)).any()
    assert not np.isinf(TINY).any()

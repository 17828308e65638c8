"""What processes touch, packed, meets where location by location it does."""

import numpy as np

from simulator.workers.access_bitmap import Marks


def test_marks_that_meet() -> None:
    rng = np.random.default_rng(7)
    met = 0
    for _ in range(500):
        pair = [Marks(64), Marks(64)]
        for marks in pair:
            low, high = sorted(rng.integers(0, 65, 2))
            for table, values in ((marks.read, 2), (marks.written, 2), (marks.summed, 3)):
                some = rng.random(high - low) < rng.choice([0, 0.02, 0.5])
                table[low:high] = some * rng.integers(1, values, high - low)
        one, two = pair
        bits = [marks.bits() for marks in pair]
        touched = [m.read | m.written for m in pair]
        changed = [m.written | (m.summed > 0) for m in pair]
        meet = (changed[0] & touched[1]).any() or (changed[1] & touched[0]).any()
        meet |= ((one.summed != two.summed) & (one.summed > 0) & (two.summed > 0)).any()
        met += meet
        assert bits[0].meets(bits[1]) == bits[1].meets(bits[0]) == meet
        both = Marks(64)
        both.read, both.written = one.read | two.read, one.written | two.written
        both.summed = np.maximum(one.summed, two.summed)
        where = bits[0].merged(bits[1]).where(64)
        assert np.flatnonzero(both.written).tolist() == np.arange(64)[where].tolist()
        third = Marks(64)
        third.written[rng.integers(0, 64, 4)] = True
        assert bits[0].merged(bits[1]).meets(third.bits()) == both.bits().meets(third.bits())
    assert 50 < met < 450

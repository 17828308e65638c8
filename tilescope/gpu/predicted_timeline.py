"""Predicted time between two moments of a stream, which is what events can say without a GPU."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class StreamMoment:
    """Progress of a stream at a moment.

    Attributes:
        stream: The stream.
        ms: Sum of the predicted times of its launches in milliseconds.
        works: Number of its launches and copies.
        all_works: Number of launches and copies of all streams.
        unpredicted: Number of its launches and copies without a predicted time.
    """

    stream: object
    ms: float
    works: int
    all_works: int
    unpredicted: int


class PredictedTimeline:
    """Sums of predicted times by stream."""

    def __init__(self) -> None:
        self._ms: defaultdict[object, float] = defaultdict(float)
        self._works: Counter[object] = Counter()
        self._unpredicted: Counter[object] = Counter()

    def add(self, stream: object, ms: float | None) -> None:
        """Add a launch, or with ``None`` a copy or a launch that is not predicted."""
        self._works[stream] += 1
        if ms is None:
            self._unpredicted[stream] += 1
        else:
            self._ms[stream] += ms

    def moment(self, stream: object) -> StreamMoment:
        """Return the state of a stream now."""
        return StreamMoment(
            stream, self._ms[stream], self._works[stream], self._works.total(),
            self._unpredicted[stream],
        )  # fmt: skip


def elapsed_ms(first: StreamMoment | None, last: StreamMoment | None) -> float:
    """Return the predicted milliseconds between two moments.

    Not a number unless both are of one stream, every work between them was a launch in that stream,
    and each of those was predicted.
    """
    if first is None or last is None or first.stream is not last.stream:
        return math.nan
    works = last.works - first.works
    is_alone = works == last.all_works - first.all_works
    if works < 1 or not is_alone or last.unpredicted != first.unpredicted:
        return math.nan
    return last.ms - first.ms

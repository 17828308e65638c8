"""The net of races in the gate: some hundred programs, which reach everything it knows."""

from __future__ import annotations

from . import races


def test_the_verdict_is_the_slow_detectors() -> None:
    report = races.run(float("inf"), 1, 200)
    assert report.programs == 200
    assert not report.differences, report.differences[0]
    assert not report.never("features")
    assert not report.never("hazards")

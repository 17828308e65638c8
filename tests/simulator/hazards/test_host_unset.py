"""Copies of uninitialised memory to the host: where padding is spoken of."""

import numpy as np

from simulator import Device, Source
from simulator.host_checks import HostChecks


def copied(device: Device, offsets: list[int]) -> np.ndarray:
    """Return an allocation of 64 bytes of which the bytes at some offsets were written."""
    made = device.allocate(64)
    made.array.missing[offsets] = False
    return made.array


def test_padding_is_noted_once_and_for_short_gaps_alone() -> None:
    checks, device = HostChecks(), Device()
    gaps = [n for n in range(64) if n % 8 < 5]
    texts = [copied(device, []), copied(device, [*range(32)]), copied(device, gaps),
             copied(device, gaps)]  # fmt: skip
    for line, array in enumerate(texts, 1):
        checks.host_unset(Source("main.cu", line), "cudaMemcpy", array)
    notes = [any("padding" in note for note in hazard.notes) for hazard in checks.hazards()]
    assert notes == [False, False, True, False]

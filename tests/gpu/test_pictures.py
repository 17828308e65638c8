"""Textures and surfaces on a GPU: the fetches that the simulator is held to, and all surfaces."""

from typing import Any

import numpy as np
import pytest

import device
import simulator
from kernels import Kernel
from tests.simulator.memory import test_surfaces
from tests.support import texture_programs as programs

NAN = np.uint32(0x7FFFFFFF)


def on_device(kernel: Kernel, **options: Any) -> Any:
    return device.launch(kernel, **options)


def alike(words: Any, floats: bool) -> Any:
    """Results with all NaN alike."""
    return np.where(np.isnan(words.view(np.float32)), NAN, words) if floats else words


@pytest.mark.gpu
@pytest.mark.parametrize("geometry", programs.SHAPES)
def test_fetches(geometry: str, gpu: None) -> None:
    seen = programs.seen()
    for name, where, made in programs.cases():
        if where != geometry:
            continue
        floats = made.array.dtype.kind == "f" or made.read == "normalized"
        theirs = alike(programs.fetched(on_device, made, where), floats)
        far = programs.inexact(name)
        if not far and name in seen:
            assert programs.crc(theirs) == seen[name], name
            continue
        ours = programs.fetched(simulator.launch, made, where)
        most = np.abs(made.array.astype(float)).max() if made.array.dtype.kind == "f" else 1
        one, two = (words.view(np.float32).astype(float) for words in (ours, theirs))
        assert np.nanmax(np.abs(one - two)) <= far * most, name


@pytest.mark.gpu
@pytest.mark.parametrize("geometry", programs.SHAPES)
def test_offsets(geometry: str, gpu: None) -> None:
    """As the simulator has them, where it has the fetch without one to the bit."""
    for name, where, made in programs.cases():
        if where == geometry and not programs.inexact(name):
            ours, theirs = (
                programs.fetched(launch, made, where, move=programs.MOVES[where])
                for launch in (simulator.launch, on_device)
            )
            floats = made.array.dtype.kind == "f" or made.read == "normalized"
            wrong = np.flatnonzero((alike(ours, floats) != alike(theirs, floats)).any(axis=1))
            assert not len(wrong), (name, wrong[:5])


@pytest.mark.gpu
@pytest.mark.parametrize("geometry", programs.SHAPES)
@pytest.mark.parametrize("mode", ["clamp", "zero"])
def test_surfaces_of_a_gpu(
    geometry: str, mode: str, gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_surfaces, "launch", on_device)
    for dtype, channels in (("uint8", 1), ("int16", 1), ("float32", 4), ("float16", 4)):
        test_surfaces.test_surfaces(geometry, dtype, channels, mode)

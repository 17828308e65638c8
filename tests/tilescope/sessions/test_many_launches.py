"""The JSON of a program that launches again and again."""

import json
from pathlib import Path

import numpy as np
import pytest

import simulator
import simulator.run
from kernels import Kernel
from tilescope import session
from tilescope.cli.output import write_json
from tilescope.sessions.recording import distinct

ADD = """extern "C" __global__ void add(float* a) { a[threadIdx.x] += 1.0f; }"""


def test_the_first_launches_from_a_place_have_counters_by_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []
    whole = simulator.run.depends_on_data
    monkeypatch.setattr(
        simulator.run, "depends_on_data", lambda *args: asked.append(1) or whole(*args)
    )
    kernel, a = Kernel.from_cuda(ADD, "add"), np.zeros(32, np.float32)
    with session() as made:
        for _ in range(18):
            simulator.launch(kernel, 1, 32, [a])
        simulator.launch(kernel, 1, 32, [a])
    write_json(str(tmp_path / "made.json"), made.to_dict())
    launches = json.loads((tmp_path / "made.json").read_text())["launches"]
    assert [launch["lines"] is not None for launch in launches] == [True] * 16 + [False] * 2 + [
        True
    ]
    assert {launch["counters"]["global_load"]["sectors"] for launch in launches} == {4}
    assert {launch["holds_for_all_data"] for launch in launches} == {True}
    assert len(asked) == 1


def test_long_json_is_not_indented(tmp_path: Path) -> None:
    for count, lines in ((10, 13), (200_000, 1)):
        write_json(str(tmp_path / "a.json"), {"a": [0.125] * count})
        assert len((tmp_path / "a.json").read_text().splitlines()) - lines in (0, 1)


def test_the_same_statements_of_several_launches_are_one_hazard() -> None:
    source = """extern "C" __global__ void at(const float* a, float* b, int i) { b[0] = a[i]; }"""
    kernel, b = Kernel.from_cuda(source, "at"), np.zeros(8, np.float32)
    with session() as made:
        for i in (8, 3, 9, 11):
            simulator.launch(kernel, 1, 1, [np.ones(8, np.float32), b, i])
    (first,) = distinct(made.launches)
    assert first.element == 8
    assert first.notes[-1] == "in 3 of 4 launches"
    assert [len(launch.run.hazards) for launch in made.launches] == [1, 0, 1, 1]

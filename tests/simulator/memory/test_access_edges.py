"""Addresses at the edges: of an array, of a window, and lanes that go to several places at once."""

from typing import Any

import numpy as np
import pytest

import simulator
from simulator.isa.memory.address_windows import MIDDLE
from simulator.memory import memories
from tests.support.launches import entry
from tilescope.view import show

HEAD = """\
.shared .align 16 .b8 s[256];
ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [out];
mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4; add.u64 %d4, %d2, %d3;
"""


def launched(body: str, threads: int, arrays: list[Any], **more: Any) -> simulator.Run:
    kernel = entry(HEAD + body, ".param .u64 a, .param .u64 b, .param .u64 out")
    return simulator.launch(kernel, 1, threads, arrays, **more)


def words(count: int, first: int = 0) -> Any:
    return np.arange(first, first + count, dtype=np.uint32)


@pytest.mark.parametrize(("back", "step"), [(4, 4), (16, 0), (12, 8)])
@pytest.mark.parametrize("guard", ["", "@%p "])
@pytest.mark.parametrize("space", [".global", ""])
def test_the_constant_part_of_an_address_leads_out_of_the_array(
    space: str, guard: str, back: int, step: int
) -> None:
    """``p[-1]``: the base is inside, only what is added to it is not."""
    body = (
        f"setp.lt.u32 %p, %r0, 3; mul.wide.u32 %d5, %r0, {step}; add.u64 %d6, %d0, %d5;\n"
        f"{guard}ld{space}.u32 %r1, [%d6+-{back}];\n"
        "st.global.u32 [%d4], %r1;"
    )
    out = words(3)
    run = launched(body, 3, [words(32, 100), words(32), out], checks={"memory"})
    places = [step * t - back for t in range(3)]
    bad = [place // 4 for place in places if place < 0]
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.element) == ("out-of-bounds", bad[0])
    assert hazard.count == len(bad)
    assert out.tolist() == [100 + p // 4 if p >= 0 else 0xFFFFFFFF for p in places]


ACCESS = {
    "load": "ld{space}.u32 %r1, [%d6]; st.global.u32 [%d4], %r1;",
    "store": "st{space}.u32 [%d6], 7;",
    "atomic": "atom{space}.add.u32 %r1, [%d6], 7; st.global.u32 [%d4], %r1;",
}


@pytest.mark.parametrize("wild", ["0", "64", "0x7fffffffffffff00", "0xfffffffffffffff8"])
@pytest.mark.parametrize("space", [".global", ""])
@pytest.mark.parametrize("how", ACCESS)
def test_one_lane_goes_astray_and_the_others_do_their_work(how: str, space: str, wild: str) -> None:
    """A null pointer in one lane, wherever it lies among the others' addresses."""
    body = (
        "setp.eq.u32 %p, %r0, 1; setp.lt.u32 %q, %r0, 3; add.u64 %d6, %d0, %d3;\n"
        f"add.u64 %d5, %d1, %d3; @!%q mov.u64 %d6, %d5; @%p mov.u64 %d6, {wild};\n"
        + ACCESS[how].format(space=space)
    )
    a, b, out = words(8, 100), words(8, 200), words(6)
    (hazard,) = launched(body, 6, [a, b, out], checks={"memory"}).hazards
    assert (hazard.kind, hazard.count) == ("out-of-bounds", 1)
    assert hazard.involved[0].thread == (1, 0, 0)
    if how != "store":
        assert out.tolist() == [100, out[1], 102, 203, 204, 205]
    if how != "load":
        new = {"store": lambda old: 7, "atomic": lambda old: old + 7}[how]
        assert a.tolist() == [new(x) if i in (0, 2) else x for i, x in enumerate(range(100, 108))]
        assert b.tolist() == [
            new(x) if i in (3, 4, 5) else x for i, x in enumerate(range(200, 208))
        ]


@pytest.mark.parametrize("space", [".global", ".shared", ""])
@pytest.mark.parametrize("how", ACCESS)
def test_lanes_are_as_far_apart_as_addresses_go(how: str, space: str) -> None:
    """The difference of two of them has 64 bits and no sign."""
    body = (
        "setp.eq.u32 %p, %r0, 1; mov.u64 %d6, 0x7ffffffffffffffc;\n"
        "@%p mov.u64 %d6, 0x8000000000000000;\n" + ACCESS[how].format(space=space)
    )
    run = launched(body, 2, [words(1), words(1), words(2)], trace=True)
    assert sum(hazard.count for hazard in run.hazards) == 2
    assert {hazard.kind for hazard in run.hazards} <= {"out-of-bounds", "address-space"}
    show(run)


@pytest.mark.parametrize("how", ["store", "atomic"])
@pytest.mark.parametrize("space", [".global", ""])
@pytest.mark.parametrize("constant", [0, 1])
def test_one_lane_writes_to_a_constant_array(constant: int, space: str, how: str) -> None:
    """The others, which write to an array before it or behind it, do so."""
    body = (
        f"setp.eq.u32 %p, %r0, 1; add.u64 %d6, %d{1 - constant}, %d3;\n"
        f"add.u64 %d5, %d{constant}, %d3; @%p mov.u64 %d6, %d5;\n" + ACCESS[how].format(space=space)
    )
    arrays = [words(8), words(8)]
    arrays[constant].flags.writeable = False
    (hazard,) = launched(body, 4, [*arrays, words(4)], checks={"memory"}).hazards
    assert (hazard.kind, hazard.element, hazard.count) == ("read-only", 1, 1)
    changed = arrays[1 - constant].tolist()
    assert changed == [
        i if i in (1, 4, 5, 6, 7) else {"store": 7}.get(how, i + 7) for i in range(8)
    ]


FAR = MIDDLE
"""So far from its space an address in ``.shared`` has nothing to do with it any more."""


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (256, "out-of-bounds"),
        (FAR - 4, "out-of-bounds"),
        (FAR, "address-space"),
        (-4, "out-of-bounds"),
        (-FAR, "out-of-bounds"),
        (-FAR - 4, "address-space"),
    ],
)
def test_how_far_an_address_may_miss_shared_memory(address: int, kind: str) -> None:
    body = f"mov.u64 %d5, {address}; ld.shared.u32 %r1, [%d5]; st.shared.u32 [s], %r1;"
    run = launched(body, 1, [words(1), words(1), words(1)], checks={"memory"})
    assert [hazard.kind for hazard in run.hazards] == [kind]


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
def test_compare_and_swap_of_16_bits(space: str) -> None:
    """Each lane a half word, the odd ones with a wrong guess; then all lanes the same one."""
    into = {
        "global": "add.u64 %d6, %d0, %d5;",
        "shared": "mov.u64 %d6, s; add.u64 %d6, %d6, %d5;",
        "generic": "mov.u64 %d6, s; cvta.shared.u64 %d6, %d6; add.u64 %d6, %d6, %d5;",
    }[space]
    dot = "" if space == "generic" else f".{space}"
    body = f"""\
mul.wide.u32 %d5, %r0, 2; {into} mul.wide.u32 %d7, %r0, 2;
add.u64 %d7, %d2, %d7; cvt.u16.u32 %h0, %r0; add.u16 %h1, %h0, 500;
st{dot}.u16 [%d6], %h1; and.b16 %h2, %h0, 1; add.u16 %h2, %h2, %h1;
atom{dot}.cas.b16 %h3, [%d6], %h2, 900; st.global.u16 [%d7], %h3;
ld{dot}.u16 %h4, [%d6]; st.global.u16 [%d7+16], %h4;
sub.u64 %d6, %d6, %d5; bar.sync 0;
add.u16 %h5, %h0, 900; add.u16 %h6, %h0, 901;
atom{dot}.cas.b16 %h3, [%d6+4], %h5, %h6; bar.sync 0;
ld{dot}.u16 %h4, [%d6+4]; st.global.u16 [%d7+32], %h4;"""
    out = np.zeros(24, np.uint16)
    run = launched(body, 8, [np.zeros(8, np.uint16), words(1), out])
    assert run.hazards == []
    assert out[:8].tolist() == [500 + t for t in range(8)]
    assert out[8:16].tolist() == [500 + t if t % 2 else 900 for t in range(8)]
    assert out[16] in range(901, 909)
    assert (out[16:] == out[16]).all()


class Counted:
    """A function of NumPy that notes how often it is asked for anything."""

    def __init__(self, function: Any) -> None:
        self.function, self.times = function, 0

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.times += 1
        return self.function(*args, **more)

    def __getattr__(self, name: str) -> Any:
        self.times += 1
        return getattr(self.function, name)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add", "add"), ("min", "minimum"), ("max", "maximum"),
        ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
    ],
)  # fmt: skip
def test_many_atomics_at_one_place_are_one_step(
    name: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a Python step a lane: a sum of a million elements would take seconds."""
    counted = Counted(getattr(np, function))
    monkeypatch.setattr(np, function, counted)
    kind = "b32" if name in ("and", "or", "xor") else "u32"
    lanes = np.random.default_rng(3).integers(0, 1 << 20, 1000, np.uint32)
    a = np.array([0xFFFFF], np.uint32)
    body = (
        "add.u64 %d5, %d1, %d3; ld.global.u32 %r1, [%d5];\n"
        f"atom.global.{name}.{kind} %r2, [%d0], %r1; st.global.u32 [%d4], %r2;"
    )
    out = words(1000)
    launched(body, 1000, [a, lanes, out], checks="none")
    assert 0 < counted.times < 100
    line = counted.function.accumulate(np.concatenate([[np.uint32(0xFFFFF)], lanes]))
    assert [*out, a[0]] == line.tolist()


ROUTINE = {
    "global": "ld.global.u32 %r1, [%d4]; st.global.u32 [%d4], %r1;",
    "generic": "ld.u32 %r1, [%d4]; st.u32 [%d4], %r1;",
    "with an offset": "ld.global.u32 %r1, [%d4+128]; ld.u32 %r1, [%d4+4];",
    "some lanes off": "@%p ld.global.u32 %r1, [%d4+392]; @%p st.u32 [%d4+392], %r1;",
    "all lanes off": "@%q ld.global.u32 %r1, [%d4+4000]; @%q st.u32 [%d4+4000], %r1;",
    "local": "ld.u32 %r1, [%d7]; st.u32 [%d7], %r1; ld.u32 %r1, [%d7+4];",
}


@pytest.mark.parametrize("name", [*ROUTINE, "two arrays"])
def test_lanes_are_told_apart_only_where_they_go_to_several_arrays(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look at every lane costs a hundred times what the usual access does."""
    body = """\
.local .align 4 .b8 own[16]; setp.lt.u32 %p, %r0, 2; setp.gt.u32 %q, %r0, 99;
mov.u64 %d6, s; add.u64 %d6, %d6, %d3; cvta.shared.u64 %d6, %d6;
mov.u64 %d7, own; cvta.local.u64 %d7, %d7; @%p mov.u64 %d1, %d0; add.u64 %d1, %d1, %d3;
""" + ROUTINE.get(name, "ld.global.u32 %r1, [%d1];")
    counted = Counted(memories.unique)
    monkeypatch.setattr(memories, "unique", counted)
    arrays = [words(100), words(100), words(100)]
    run = launched(body, 32 if name != "some lanes off" else 3, arrays, checks={"memory"})
    assert run.hazards == []
    assert (counted.times > 0) == (name == "two arrays")


def test_generic_addresses_of_shared_memory_are_no_special_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = (
        "mov.u64 %d6, s; add.u64 %d6, %d6, %d3; GENERIC\n"
        "st.u32 [%d6], %r0; ld.u32 %r1, [%d6]; ld.u32 %r1, [%d6+4]; @%p st.u32 [%d6+4], %r1;"
    )
    direct = body.replace("GENERIC", "").replace("ld.", "ld.shared.").replace("st.", "st.shared.")
    times = []
    for text in (direct, body.replace("GENERIC", "cvta.shared.u64 %d6, %d6;")):
        counted = Counted(memories.unique)
        monkeypatch.setattr(memories, "unique", counted)
        run = launched(f"setp.lt.u32 %p, %r0, 9;\n{text}", 32, [words(1)] * 3, checks={"memory"})
        monkeypatch.undo()
        assert run.hazards == []
        times.append(counted.times)
    assert times[0] == times[1]


@pytest.mark.parametrize(
    ("step", "often"),
    [
        ("", False),
        ("add.u64 %d5, %d5, 4;", False),
        ("xor.b64 %d5, %d5, 4;", False),
        ("mul.wide.u32 %d6, %r2, 4; xor.b64 %d5, %d4, %d6;", True),
    ],
)
def test_an_address_is_looked_at_once_while_it_stays_moves_on_or_comes_again(
    step: str, often: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"""\
mov.u32 %r2, 0; mov.u64 %d5, %d4;
LOOP: ld.global.u32 %r1, [%d5];
add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 200;
{step}
@%p bra LOOP;"""
    counted = Counted(np.minimum)
    monkeypatch.setattr(np, "minimum", counted)
    run = launched(body, 32, [words(1), words(1), words(300)], checks={"memory"})
    assert run.hazards == []
    assert (counted.times >= 200) == often
    assert often or counted.times < 50


def test_lanes_in_two_arrays_are_counted_in_every_round() -> None:
    body = (
        "setp.eq.u32 %p, %r0, 0; add.u64 %d5, %d0, %d3; @%p mov.u64 %d5, %d1; mov.u32 %r2, 0;\n"
        "LOOP: ld.global.u32 %r1, [%d5]; add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, 3; @%q bra LOOP;"
    )
    run = launched(body, 32, [words(32), words(1), words(1)])
    assert run.counters.global_load.sectors == 3 * (4 + 1)

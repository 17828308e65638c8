"""How many pairs of threads race: so many are counted, the same however blocks are shared."""

import numpy as np
import pytest

import simulator
from simulator.races.report.pairs import MAX_PAIRS, Pairs
from tests.support.launches import compiled, entry, ints

# -- pairs that are more than can be listed ---------------------------------------------------

SHARED = """\
.shared .align 4 .b8 s[4];
mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 512;
"""


def writers(run: simulator.Run) -> dict[str, tuple[int, bool]]:
    """By distance: pairs of threads that write the same word, and whether there are more."""
    found = {}
    for hazard in run.hazards:
        assert hazard.kind == "waw-race"
        distance = next(d for d in ("lane", "warp", "block") if f"another {d}" in hazard.message)
        found[distance] = hazard.count, hazard.capped
        assert hazard.notes[0].startswith("at least 4,096 pairs") == hazard.capped
        assert hazard.to_dict()["pairs"] == hazard.count
        assert hazard.to_dict()["pairs_capped"] == hazard.capped
    return found


def pairs_of(threads: int) -> dict[str, int]:
    """Of a block all of whose threads race with each other."""
    lanes = threads // 32 * (32 * 31 // 2)
    return {"lane": lanes, "warp": threads * (threads - 1) // 2 - lanes}


@pytest.mark.parametrize(("grid", "threads"), [(3, 1024), (1, 96), (1, 128), (2, 64)])
def test_pairs_are_counted_up_to_some(grid: int, threads: int) -> None:
    kernel = entry(SHARED + "st.shared.u32 [s], %r0;", "")
    found = writers(simulator.launch(kernel, grid, threads, []))
    true = {distance: grid * n for distance, n in pairs_of(threads).items()}
    assert found == {distance: (min(n, MAX_PAIRS), n > MAX_PAIRS) for distance, n in true.items()}


@pytest.mark.parametrize("value", ["1", "i == 2047 ? 2 : 1", "i < 2047 ? 1 : 2 + (i > 2500)"])
@pytest.mark.parametrize("grid", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_value_of_a_late_thread_is_not_overlooked(grid: int, value: str) -> None:
    """Far behind the pairs that are counted; all threads write one word at once."""
    head, body = "int i = blockIdx.x * blockDim.x + threadIdx.x;", f"o[0] = {value};"
    for text in (body, f"{body} __syncthreads(); {body}"):
        kernel = compiled(f"(int* o) {{ {head} {text} }}")
        run = simulator.launch(kernel, grid, 1024, ints(1))
        assert {h.severity for h in run.hazards} == {"warning" if value == "1" else "error"}
        assert set(writers(run).values()) == {(MAX_PAIRS, True)}


def test_which_pairs_are_kept_depends_on_no_order() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 300, (2, 40_000))
    keys = np.unique(np.minimum(one, other) << 32 | np.maximum(one, other))
    assert len(keys) > MAX_PAIRS
    for _ in range(3):
        turn = rng.permutation(len(one))
        first, second = Pairs(), Pairs()
        for piece in np.array_split(turn, 7):
            (first if piece[0] % 2 else second).add(one[piece], other[piece])
        first.update(second)
        assert first.full
        assert len(first) == MAX_PAIRS
        assert (first.keys == keys[: MAX_PAIRS + 1]).all()
        assert first.behind == keys[MAX_PAIRS]


CROWDS = {
    "one word": "s[0] = t; if (t == 500) o[0] = s[0];",
    "one word, then all of them": "s[0] = t; o[t] = s[0];",
    "each word by many": "s[t % 7] = 1; o[t] = s[(t + blockIdx.x) % 7];",
    "read by all before": "o[t] = s[t % 3]; s[t % 5] = 2 * t;",
    "blocks that differ": "if (blockIdx.x % 3 == 1) { s[t % 9] = t; } o[t] = s[t % 4];",
    "in a loop": "for (int k = 0; k < 4; ++k) { s[(t + k) % 64] = k; o[t] = s[t / 2]; }",
    "a barrier in a loop": "for (int k = 0; k < 4; ++k) { s[t / 2] = k; o[t] = s[(t + k) % 96];"
    " __syncthreads(); }",
}


@pytest.mark.parametrize(
    "body",
    [pytest.param(t, marks=[pytest.mark.slow] * ("loop" in n)) for n, t in CROWDS.items()],
    ids=CROWDS,
)
@pytest.mark.parametrize("space", ["shared", "global"])
def test_what_is_told_of_crowds_is_the_same_however_blocks_are_shared(
    body: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds, lines, counts, locations and examples: in batches of some blocks, one by one, all."""
    array = "__shared__ int s[192];" if space == "shared" else "int* s = a + 192 * blockIdx.x;"
    kernel = compiled(f"(int* a, int* o) {{ {array} int t = threadIdx.x; {body} }}")
    found = []
    for lanes in (1 << 16, 192, 3 * 192):
        monkeypatch.setattr("simulator.execute.batches.LANES", lanes)
        run = simulator.launch(kernel, 10, 192, ints(10 * 192, 192), checks=["races"])
        found.append([h.to_dict() for h in run.hazards])
    assert found[0]
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("space", ["shared", "global"])
def test_a_barrier_takes_some_of_the_pairs_away(space: str) -> None:
    """Those that are left are more than are counted."""
    if space == "shared":
        body = "@%p st.shared.u32 [s], %r0; bar.sync 0; @!%p st.shared.u32 [s], %r0;"
        kernel = entry(SHARED + body, "")
    else:
        kernel = compiled(
            "(int* o) { int t = threadIdx.x; if (t < 512) o[blockIdx.x] = t;"
            " __syncthreads(); if (t >= 512) o[blockIdx.x] = t; }"
        )
    args = ints(5) if space == "global" else []
    found = writers(simulator.launch(kernel, 5, 1024, args))
    true = {distance: 10 * n for distance, n in pairs_of(512).items()}
    assert min(true.values()) > MAX_PAIRS
    assert found == dict.fromkeys(true, (MAX_PAIRS, True))


def test_a_flag_takes_some_of_the_pairs_away() -> None:
    """One thread of the second block waits for the first block; the third waits for nobody."""
    source = (
        "(volatile int* f, int* o) { int i = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (blockIdx.x == 1) { if (threadIdx.x) return; while (f[0] == 0); __threadfence(); }"
        " o[0] = i; if (blockIdx.x == 0) { __threadfence(); __syncthreads();"
        " if (threadIdx.x == 0) f[0] = 1; } }"
    )
    found = writers(simulator.launch(compiled(source), 3, 1024, ints(1, 1)))
    assert found["block"] == (MAX_PAIRS, True)

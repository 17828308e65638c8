"""Faulty on purpose: one kernel for each kind of hazard, and its twin without the fault.

Each is a template of one ``bool``: ``faulty_shared_raw`` is ``shared_raw<false>``, which
commits the fault, and ``faulty_shared_raw_fixed`` is ``shared_raw<true>``, which does not.
The size is the number of blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

Model = Callable[[Any, int], Any]
"""From the input and the width of a block to the output of the twin. Those that several twins
share, or that take more than an expression, have a name."""


def _mirrored(values: Any, width: int) -> Any:
    return values.reshape(-1, width)[:, ::-1].reshape(-1)


def _same(values: Any, width: int) -> Any:
    return values


def _second_warp(values: Any, width: int) -> Any:
    return np.tile(values.reshape(-1, 2, 32)[:, 1:], (1, 2, 1)).reshape(-1)


def _elsewhere(values: Any, width: int) -> Any:
    signed = values.reshape(-1, 2, 32) * np.array([[1], [-1]])
    return _mirrored(signed, width)


def _first_of_half(values: Any, width: int) -> Any:
    lanes = values.reshape(-1, 32).copy()
    lanes[:, :16] = lanes[:, :1]
    return lanes.reshape(-1)


def _plus_one_in_half(values: Any, width: int) -> Any:
    lanes = np.zeros_like(values).reshape(-1, 32)
    lanes[:, :16] = values.reshape(-1, 32)[:, :16] + 1
    return lanes.reshape(-1)


def _without_tail(values: Any, width: int) -> Any:
    rows = np.zeros_like(values).reshape(-1, width)
    rows[:, :48] = values.reshape(-1, width)[:, 47::-1]
    return rows.reshape(-1)


def _consumed(values: Any, width: int) -> Any:
    rows = np.zeros_like(values).reshape(-1, 2, 32)
    rows[:, 1] = values.reshape(-1, 2, 32)[:, 0]
    return rows.reshape(-1)


def _first_is_one(values: Any, width: int) -> Any:
    return (np.arange(len(values)) == 0).astype(np.int64)


def _plus_one_mirrored(values: Any, width: int) -> Any:
    return _mirrored(values, width) + 1


def _two_blocks(values: Any, width: int) -> Any:
    rows = values.reshape(-1, width)
    return _mirrored(rows + np.roll(rows, -1, axis=0), width)


def _both_halves(values: Any, width: int) -> Any:
    halves = values.reshape(-1, 2, 32)
    return np.stack([np.zeros_like(halves[:, 0]), halves.sum(axis=1)], axis=1).reshape(-1)


def _partners(values: Any, width: int) -> Any:
    return values.reshape(-1, 2, width)[:, ::-1, ::-1].reshape(-1)


def _sums(values: Any, width: int) -> Any:
    rows = np.zeros_like(values).reshape(-1, width)
    rows[:, 0] = values.reshape(-1, width).sum(axis=1)
    return rows.reshape(-1)


def _pair(
    name: str,
    source: str,
    summary: str,
    model: Model,
    extra: str = "",
    width: int = 64,
    racy: bool = False,
    without_input: bool = False,
    cluster: int = 1,
) -> tuple[LibraryKernel, LibraryKernel]:
    """Return the kernel and its twin.

    ``extra`` are further arguments, a word each: ``work``, ``flag``, ``tickets``: arrays; ``n``:
    elements of a ragged array; ``null``: no array. ``width``: threads of a block; ``racy``: the
    output depends on the schedule; ``without_input``: the first argument is the output, and the
    input is in ``work``; ``cluster``: of so many blocks is a cluster.
    """
    full = f"faulty_{name}"

    def build(size: Size, tile: int, rng: np.random.Generator) -> Launch:
        (blocks,) = size
        if blocks % cluster:
            raise ValueError(f"{full} takes a multiple of {cluster} blocks: its clusters")
        count = blocks * width - (14 if extra == "n" else 0)
        values = rng.integers(0, 1000, count, dtype=np.int32)
        work = values.copy() if without_input else np.zeros(blocks * width, np.int32)
        makers: dict[str, Callable[[], Any]] = {
            "work": lambda: work,
            "flag": lambda: np.zeros(1, np.int32),
            "tickets": lambda: np.zeros(1, np.uint32),
            "n": lambda: count,
            "null": lambda: None,
        }
        given = values.copy()
        given.flags.writeable = False
        out = np.zeros(count, np.int32)
        first = [out] if without_input else [given, out]
        args = [*first, *(makers[word]() for word in extra.split())]

        def reference(args: Sequence[Any]) -> Mapping[str, Expected]:
            return {"out": Expected(model(values.astype(np.int64), width), np.float64(0))}

        return Launch((blocks,), (width,), args, {"out": len(first) - 1}, reference)

    path = f"faulty/{source}.cu"
    return (
        LibraryKernel(
            full, f"faulty: {summary}", path, f"{name}<false>", ("blocks",), (2,), build,
            racy=racy, twin=f"{full}_fixed",
        ),
        LibraryKernel(
            f"{full}_fixed", f"without the fault of {name}", path, f"{name}<true>",
            ("blocks",), (2,), build,
        ),
    )  # fmt: skip


_PAIRS = (
    _pair("shared_raw", "shared_races", "reads before another warp has written", _mirrored,
          racy=True),
    _pair("shared_war", "shared_races", "writes before another warp has read", _plus_one_mirrored,
          racy=True),
    _pair("shared_waw", "shared_races", "two warps write the same words", _second_warp, racy=True),
    _pair("shared_same_value", "shared_races", "all write one value to one word",
          lambda v, width: np.ones_like(v)),
    _pair("global_raw", "global_races", "reads before another warp has written", _mirrored, "work",
          racy=True),
    _pair("global_war", "global_races", "writes before another warp has read", _plus_one_mirrored,
          "work", racy=True),
    _pair("global_waw", "global_races", "two warps write the same words", _second_warp, racy=True),
    _pair("blocks_raw", "global_races", "reads what another block writes", _mirrored, "work",
          racy=True),
    _pair("blocks_war", "global_races", "writes what another block reads", lambda v, width: v[::-1],
          "work", racy=True, without_input=True),
    _pair("blocks_waw", "global_races", "all blocks write the same words", _same, racy=True),
    _pair("blocks_same_value", "global_races", "all blocks write one value to one word",
          _first_is_one),
    _pair("last_block", "global_races", "the last block's sum lacks a fence",
          lambda v, width: _first_is_one(v, width) * v.sum(), "work tickets", racy=True),
    _pair("lanes_raw", "warp_races", "reads before another lane has written", _mirrored, width=32,
          racy=True),
    _pair("lanes_war", "warp_races", "writes before another lane has read", _plus_one_mirrored,
          width=32, racy=True),
    _pair("lanes_waw", "warp_races", "two lanes write the same word",
          lambda v, width: np.repeat(v[1::2], 2), width=32, racy=True),
    _pair("half_warp_sync", "warp_races", "a warp barrier of half of the lanes", _mirrored,
          width=32, racy=True),
    _pair("warp_sync_for_block", "warp_races", "a warp barrier between two warps",
          lambda v, width: _mirrored(v, 32), racy=True),
    _pair("barrier_skipped", "barriers", "a barrier that a warp never comes to", _same),
    _pair("barrier_elsewhere", "barriers", "warps wait at different barriers", _elsewhere),
    _pair("barrier_rounds", "barriers", "lanes meet a barrier in different rounds", _mirrored),
    _pair("barrier_after_exit", "barriers", "a barrier after some threads left", _without_tail),
    _pair("barrier_count", "barriers", "waits for more threads than there are", _mirrored),
    _pair("named_barrier", "barriers", "a named barrier of too few threads",
          lambda v, width: _mirrored(v, 64), width=128, racy=True),
    _pair("producer_consumer", "barriers", "the consumer does not wait", _consumed, racy=True),
    _pair("endless_wait", "barriers", "waits for a flag that nobody sets", _same, "flag"),
    _pair("shuffle_mask", "barriers", "the mask names lanes that do not come", _first_of_half),
    _pair("warp_sync_mask", "barriers", "the mask names lanes that do not come", _plus_one_in_half),
    _pair("missing_in_reduction", "missing", "a reduction without its inner barrier", _sums,
          width=128, racy=True),
    _pair("missing_in_stencil", "missing", "a stencil without its barrier",
          lambda v, width: np.convolve(v, np.ones(3, np.int64), "same"), racy=True),
    _pair("missing_wait", "copies", "nobody waits for a copy", _mirrored, racy=True),
    _pair("missing_commit", "copies", "waits for a copy that is in no group", _mirrored, racy=True),
    _pair("stage_reuse", "copies", "copies into a stage that is still read", _two_blocks,
          racy=True),
    _pair("missing_proxy_fence", "copies", "a copy in bulk of what threads wrote", _mirrored,
          racy=True),
    _pair("wrong_phase", "copies", "waits for the phase before", _both_halves, racy=True),
    _pair("missing_cluster_barrier", "clusters", "reads before another block has written",
          _partners, racy=True, cluster=2),
    _pair("missing_last_cluster_barrier", "clusters", "a block may leave while others read in it",
          _partners, cluster=2),
    _pair("no_guard", "memory", "writes behind the end of an array", _same, "n"),
    _pair("neighbour", "memory", "reads in front of an array",
          lambda v, width: np.diff(v, prepend=v[:1])),
    _pair("past_shared", "memory", "reads behind shared memory",
          lambda v, width: np.roll(v.reshape(-1, width), -1, axis=1).reshape(-1)),
    _pair("misaligned", "memory", "a vector at an odd element",
          lambda v, width: np.repeat(v.reshape(-1, 2).sum(axis=1), 2)),
    _pair("read_only", "memory", "writes to a constant array", _same),
    _pair("read_only_load", "memory", "a read-only load of what the launch wrote", _mirrored,
          "work", racy=True),
    _pair("null_pointer", "memory", "reads through a null pointer", _same, "null"),
    _pair("wrong_space", "memory", "a shared address used as a global one", _same),
    _pair("uninitialised_shared", "memory", "reads shared memory never written", _mirrored),
    _pair("uninitialised_local", "memory", "reads an own array's unset element",
          lambda v, width: np.zeros_like(v)),
    _pair("unset_constant", "memory", "reads constants that nobody filled",
          lambda v, width: v + np.resize([3, 5], len(v))),
    _pair("assertion", "memory", "an assertion fails", _same),
    _pair("trap", "memory", "executes a trap", _same),
)  # fmt: skip

KERNELS = tuple(kernel for pair in _PAIRS for kernel in pair)

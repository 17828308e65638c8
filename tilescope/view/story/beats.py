"""Beats, phases and the warps' timeline of a block."""

import itertools
from dataclasses import dataclass, field

import numpy as np

from .roles import ARRIVE, ATOMIC, COMPUTE, KEEP, LOAD, READ, RELEASE, WRITE, Roles
from .steps import StorySteps

COPY, MAKE, WAIT, STORE, ADD, FETCH = range(6)
"""Kinds of beats.

A copy to shared memory, arithmetic, a wait at a barrier, a store to global memory, an atomic, and a
load or read whose value a later beat uses."""

HATCH = 9
"""Code of a segment in which a warp waits. Other segments have their array's hue."""


@dataclass
class Beats:
    """Beats, phases and timeline of one block.

    Attributes:
        beats: Rows ``(warp, kind, from, to, watched)``. Steps count from 0; ``to`` is past the end.
        segments: Rows ``(warp, hue, from, to)``.
        phases: Rows ``(from, to, number)``. The steps after the last phase have number 0.
        releases: Steps at which a barrier opens.
        loads: Accesses of global memory by loads before each step, one entry more than steps. A
            bulk copy counts its elements.
        reads: Accesses of shared memory by loads, likewise.
    """

    beats: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    segments: list[tuple[int, int, int, int]] = field(default_factory=list)
    phases: list[tuple[int, int, int]] = field(default_factory=list)
    releases: list[int] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)


def beats_of(
    steps: StorySteps, roles: Roles, hues: dict[int, int], variables: list[int],
    copied: dict[int, tuple[int, int]],
) -> Beats:  # fmt: skip
    """Return the beats of all warps.

    Args:
        steps: Steps of the block.
        roles: Roles of the instructions.
        hues: Hues of the global arrays by place.
        variables: Hues of the shared variables by number.
        copied: Array and number of elements that the bulk copy of a step reads.
    """
    found = Beats(releases=np.flatnonzero(steps.acts == RELEASE).tolist())
    found.phases = phases_of(steps)
    weight = steps.lanes.sum(axis=1, dtype=np.int64)
    acts = steps.acts.copy()
    for step, (_, elements) in copied.items():
        acts[step], weight[step] = LOAD, elements
    for act, into in ((LOAD, found.loads), (READ, found.reads)):
        into += np.concatenate(([0], np.cumsum(np.where(acts == act, weight, 0)))).tolist()
    for warp in range(steps.lanes.shape[1]):
        own = np.flatnonzero(steps.lanes[:, warp]).tolist()
        acts = steps.acts[own].tolist()
        found.beats += _warp_beats(steps, roles, warp, own, acts)
        found.segments += _segments(steps, roles, hues, variables, copied, warp, own, acts)
    return found


def _warp_beats(
    steps: StorySteps, roles: Roles, warp: int, own: list[int], acts: list[int]
) -> list[tuple[int, int, int, int, int]]:
    found: list[tuple[int, int, int, int, int]] = []
    group: list[int] = []

    def close() -> None:
        if group:
            kinds = {acts[i] for i in group}
            last = max(group, key=lambda i: (_weight(acts[i]), i))
            start, end = own[group[0]], own[group[-1]] + 1
            found.append((warp, _kind(kinds), start, end, int(steps.watched[own[last]])))
            group.clear()

    for i, act in enumerate(acts):
        if act == RELEASE:
            if group and acts[group[0]] == ARRIVE:
                found.append(
                    (warp, WAIT, own[group[0]], own[i] + 1, int(steps.watched[own[group[0]]]))
                )
                group.clear()
            continue
        if group and _parts(acts[group[-1]], {acts[j] for j in group}, act):
            close()
        elif group and act == COMPUTE == acts[group[-1]]:
            before, now = (int(steps.watched[own[j]]) for j in (group[-1], i))
            ended = roles.running[before] and not roles.running[now]
            if before in roles.chain[now] or (ended and roles.chain[before]):
                close()  # the next term of the same sum
        group.append(i)
    close()
    return found


def _parts(last: int, kinds: set[int], act: int) -> bool:
    """Return whether an act begins a new beat."""
    if act == ARRIVE or ARRIVE in kinds:
        return True
    if last in (WRITE, KEEP, ATOMIC):
        return act != last
    if act in (WRITE, ATOMIC):
        return COMPUTE in kinds
    return last == COMPUTE and act in (LOAD, READ)


def _weight(act: int) -> int:
    """Return the precedence of an act: a beat has the source line of its highest one."""
    return {COMPUTE: 4, WRITE: 5, ATOMIC: 5, KEEP: 3}.get(act, 1)


def _kind(kinds: set[int]) -> int:
    if ARRIVE in kinds:
        return WAIT
    if ATOMIC in kinds:
        return ADD
    if WRITE in kinds:
        return STORE
    if COMPUTE in kinds:
        return MAKE
    if KEEP in kinds:
        return COPY
    return FETCH


def _segments(
    steps: StorySteps, roles: Roles, hues: dict[int, int], variables: list[int],
    copied: dict[int, tuple[int, int]], warp: int, own: list[int], acts: list[int],
) -> list[tuple[int, int, int, int]]:  # fmt: skip
    found: list[tuple[int, int, int, int]] = []
    waits = -1
    for step, act in zip(own, acts, strict=True):
        if act == RELEASE:
            if waits >= 0:
                found.append((warp, HATCH, waits, step + 1))
            waits = -1
            continue
        if act == ARRIVE:
            waits = step
            continue
        number = int(steps.watched[step])
        hue = 2
        if step in copied:
            hue = hues.get(copied[step][0], 2)
        elif act == LOAD:
            hue = hues.get(roles.place[number], 2)
        elif act == KEEP and roles.variable[number] >= 0:
            hue = variables[roles.variable[number]]
        if found and found[-1][1] == hue and found[-1][3] == step:
            found[-1] = (warp, hue, found[-1][2], step + 1)
        else:
            found.append((warp, hue, step, step + 1))
    if waits >= 0:  # the barrier never opens
        found.append((warp, HATCH, waits, len(steps.acts)))
    return found


def phases_of(steps: StorySteps) -> list[tuple[int, int, int]]:
    """Return the phases: barrier intervals, merged if a loop loads, waits, computes and waits.

    Each interval that copies from global memory begins a phase. If shared memory is rewritten from
    its own contents, every interval is a phase. A last interval that only stores is no phase.
    """
    openings = [int(at) + 1 for at in np.flatnonzero(steps.acts == RELEASE)]
    if not openings:
        return [(0, len(steps.acts), 1)] if len(steps.acts) else []
    bounds = sorted({0, *openings, len(steps.acts)})
    spans = list(itertools.pairwise(bounds))
    acts = [set(steps.acts[a:b].tolist()) for a, b in spans]
    loading = [bool({LOAD} & kinds) and bool({KEEP} & kinds) for kinds in acts]
    rewrites = sum(bool({KEEP} & kinds) and LOAD not in kinds for kinds in acts)
    merge = any(loading) and not rewrites
    found: list[tuple[int, int, int]] = []
    number = 0
    for (start, end), kinds, loads in zip(spans, acts, loading, strict=True):
        tail = end == bounds[-1] and not kinds & {KEEP, ARRIVE}
        if tail and found and WRITE in kinds and COMPUTE not in kinds:
            found.append((start, end, 0))
        elif found and merge and not loads:
            found[-1] = (found[-1][0], end, found[-1][2])
        else:
            number += 1
            found.append((start, end, number))
    return found

"""Defects of how threads work together: which launches have them, and what these are without."""

from __future__ import annotations

import dataclasses
import math

from kernels.ptx.module import Instruction

from ...compile.cfg.basic_blocks import successors
from ...gpus.occupancy import max_shared
from ...gpus.occupancy import occupancy as occupancy_of
from ...observe.counters.banks import SECTOR
from ..block_footprint import elements, some_of, together
from ..model_input import PredictionCase, counted
from ..work import SiteWork, repeated, scaled
from .change import Change, places, worst

_BUSY = 0.25
"""Share of its warps from which on a multiprocessor is not short of blocks."""
_ROUNDING = 1e-6
_SHUFFLES = 5
"""That sum a warp."""
_SUMS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""Operations of which a block can do several as one."""


def occupancy(case: PredictionCase) -> Change | None:
    """Few warps fit on a multiprocessor, so that all of them wait at once."""
    found, launch, gpu = case.observed.occupancy, case.launch, case.observed.gpu
    threads = math.prod(launch.block)
    if "warps" in found.limiters or found.registers is None:
        return None
    others = (n for name, n in found.limits.items() if n and name not in found.limiters)
    wanted = min(2 * found.blocks, *others)
    changes = []
    if "registers" in found.limiters:
        fits = (n for n in range(found.registers, 15, -1)
                if (occupancy_of(gpu, threads, n).limits["registers"] or 0) >= wanted)  # fmt: skip
        limit = next(fits, 16)
        changes.append(f"{limit} registers a thread or fewer instead of {found.registers} "
                     f"(__launch_bounds__({threads}, {wanted}))")  # fmt: skip
    if "shared memory" in found.limiters:
        limit = max_shared(gpu.architecture, wanted)
        changes.append(
            f"{limit:,} bytes of shared memory a block instead of {launch.shared_bytes:,}"
        )
    if "blocks" in found.limiters:
        changes.append(f"larger blocks than {threads} threads")
    fields = {
        "warps": found.warps, "most": found.max_warps, "limiter": " and ".join(found.limiters),
        "change": ", and ".join(changes),
    }  # fmt: skip
    shape = dataclasses.replace(case.shape, resident=wanted)
    return Change(dataclasses.replace(case, shape=shape), None, fields)


def few_blocks(case: PredictionCase) -> Change | None:
    """The grid leaves multiprocessors without a block, or with fewer than they can hold."""
    gpu, shape = case.observed.gpu, case.shape
    blocks = len(case.observed.sample.blocks)
    rounds = max((piece.rounds / blocks for piece in case.found), default=1.0)
    slots = gpu.sms * shape.resident
    there = -(-shape.blocks // gpu.sms) * shape.warps
    busy = shape.blocks >= gpu.sms and there >= _BUSY * gpu.architecture.warps
    if shape.blocks >= slots or busy:
        return None
    full = max(1.0, _items(case) / 32)
    in_rounds = max(1.0, min(slots / shape.blocks, full / shape.blocks / shape.warps, rounds))
    in_warps = max(1.0, min(min(slots, full) / shape.blocks / in_rounds, shape.warps))
    pieces = in_rounds * in_warps
    if pieces < 1.5:
        return None
    found = [
        dataclasses.replace(p, warps=p.warps / pieces, rounds=p.rounds / in_rounds)
        for p in case.found
    ]
    mended = case.with_code(found)
    work = repeated(mended.work, 1 / pieces)
    work = dataclasses.replace(work, barriers=case.work.barriers / pieces)
    wanted = math.ceil(shape.blocks * pieces - _ROUNDING)
    warps = math.ceil(min(full, shape.blocks * shape.warps * in_rounds) / wanted - _ROUNDING)
    split = dataclasses.replace(shape, blocks=wanted, warps=warps)
    counted_blocks = "1 block" if shape.blocks == 1 else f"{shape.blocks:,} blocks"
    each = f" of {32 * warps} threads" if in_warps > 1 else ""
    fields = {"blocks": counted_blocks, "sms": gpu.sms, "wanted": wanted, "each": each}
    return Change(dataclasses.replace(mended, work=work, shape=split), None, fields)


def _items(case: PredictionCase) -> float:
    """Return for how many threads there is work: those that run now, or elements of an array."""
    sample, sizes = case.observed.sample, case.launch.program.blocks
    length = {block.number: len(block.block.instructions) for block in sizes}
    rounds = sum(length[n] * count for n, count in sample.path.rounds.items())
    threads = sum(length[n] * sample.ran.threads[n] for n in sample.path.rounds)
    strides = sample.requests.strides
    widths = {
        site.number: max(site.nbytes, stride if stride <= SECTOR else 0)
        for site in case.launch.program.sites
        for stride in [abs(strides.get(site.number) or 0)]
    }
    found = elements(sample.touches, widths) * sample.factor
    return max(found, threads / rounds * case.shape.blocks)


def divergence(case: PredictionCase) -> Change | None:
    """Warps go both ways at a branch: as many threads would fit into fewer warps."""
    sample, program = case.observed.sample, case.launch.program
    if not any(sample.ran.parted):
        return None
    threads, warps = sample.ran.threads, sample.ran.warps
    full = math.prod(case.launch.block) / case.shape.warps
    fewer = {
        n: min(warps[n], max(math.ceil(threads[n] / full), int(sample.path.rounds.get(n, 0))))
        for n in range(len(warps))
    }
    sizes = {block.number: len(block.block.instructions) for block in program.blocks}
    whole = sum(warps[n] * size for n, size in sizes.items())
    lanes = sum(threads[n] * size for n, size in sizes.items())
    wasted = {n: (warps[n] - fewer[n]) * size for n, size in sizes.items()}
    if sum(wasted.values()) < 0.05 * whole:
        return None
    rounds = {
        n: count * fewer[n] / warps[n] if warps[n] else count
        for n, count in sample.path.rounds.items()
    }
    mended = case.with_code(counted(case.observed, fewer, rounds))
    changed = {}
    for at, one in enumerate(case.work.sites):
        n = one.site.block
        if n in fewer and warps[n] > fewer[n]:
            share = fewer[n] / warps[n]
            changed[at] = dataclasses.replace(
                one, requests=one.requests * share, tags=one.tags * share,
                lines=one.lines * share, wavefronts=one.wavefronts * share,
            )  # fmt: skip
    worst_block = max(wasted, key=lambda n: wasted[n])
    return Change(
        mended.with_sites(changed), _branch_to(case, worst_block), {"share": lanes / (32 * whole)}
    )


def _branch_to(case: PredictionCase, number: int) -> Instruction | None:
    """The branch that sends threads to a basic block, or to another."""
    blocks = case.launch.program.blocks
    for block in blocks:
        ways = successors(block.block)
        if number in ways and len(set(ways)) > 1 and block.block.instructions:
            return block.block.instructions[-1]
    return next((b.block.instructions[0] for b in blocks if b.number == number), None)


def atomics(case: PredictionCase) -> Change | None:
    """Many atomics of a block go to few places."""
    distinct = case.block.places
    some = {at: one for at, one in _global_sums(case).items() if _serial(case, one)}
    if not some:
        return None
    blocks, same = len(case.observed.sample.blocks), case.observed.sample.atomics.same
    changed, rest = {}, []
    for at, one in some.items():
        by_lane = one.passes > one.requests * 1.01  # otherwise ptxas sums the warp
        further = same[one.site.number] / blocks if by_lane else 0.0
        changed[at] = dataclasses.replace(
            one, space="shared", wavefronts=one.requests, passes=further
        )
        rest.append(dataclasses.replace(scaled(one, 0), passes=distinct[one.site.number]))
    mended = case.with_sites(changed, *rest)
    word = min(case.work.atomic_word, float(len(some)))
    first = worst(some.values(), lambda one: one.passes)
    passes = sum(one.passes for one in some.values() if one.site.line == first.user_line)
    work = dataclasses.replace(mended.work, atomic_word=word)
    return Change(dataclasses.replace(mended, work=work), first, {"passes": passes})


def atomics_of_blocks(case: PredictionCase) -> Change | None:
    """Each of many blocks adds to the same few places."""
    sample, shape = case.observed.sample, case.shape
    slots = case.observed.gpu.sms * shape.resident
    if shape.blocks <= slots:
        return None
    times = shape.blocks / slots
    some = some_of(sample.blocks, math.ceil(times))
    changed = {}
    for at, one in _global_sums(case).items():
        if not _serial(case, one):
            distinct, each = together(sample.touches, one.site.number, some)
            if len(some) > 1 and distinct < 2 * each:
                changed[at] = scaled(one, distinct / each)
    if not changed:
        return None
    found = [
        dataclasses.replace(p, warps=p.warps * times, rounds=p.rounds * times) for p in case.found
    ]
    mended = case.with_code(found)
    work = dataclasses.replace(repeated(mended.work, times), atomic_word=case.work.atomic_word)
    mended = dataclasses.replace(mended, work=work).with_sites(changed)
    fewer = dataclasses.replace(shape, blocks=slots)
    first = worst([case.work.sites[at] for at in changed], lambda one: one.passes)
    fields = {"blocks": shape.blocks, "slots": slots}
    return Change(dataclasses.replace(mended, shape=fewer), first, fields)


def _global_sums(case: PredictionCase) -> dict[int, SiteWork]:
    """Atomics of global memory of which a block could do fewer."""
    return places(
        case,
        lambda one: (
            one.space == "global"
            and one.site.access == "atomic"
            and _sums(case, one)
            and case.block.places.get(one.site.number, 0) > 0
        ),
    )


def _serial(case: PredictionCase, one: SiteWork) -> bool:
    """Whether the atomics of a block access few locations."""
    return one.passes >= 2 * case.block.places[one.site.number]


def _sums(case: PredictionCase, one: SiteWork) -> bool:
    """Whether a block could do fewer of an atomic: not of a lock's, nor of one lane's ticket."""
    ran, site = case.observed.sample.ran, one.site
    alone = ran.threads[site.block] <= ran.warps[site.block]
    return site.operation in _SUMS and not (site.returns and alone)


def shared_atomics(case: PredictionCase) -> Change | None:
    """Lanes of a warp go to one word of shared memory."""

    def serial(one: SiteWork) -> bool:
        shared = one.space == "shared" and one.site.access == "atomic"
        return shared and _sums(case, one) and one.passes >= 3 * one.requests > 0

    some = places(case, serial)
    if not some:
        return None
    requests = sum(one.requests for one in some.values())
    more = dict(case.work.issued)
    for pipe in ("shuffle", "alu"):
        more[pipe] = more.get(pipe, 0.0) + _SHUFFLES * requests
    mended = case.with_sites(
        {
            at: dataclasses.replace(
                one, passes=0, wavefronts=max(one.requests, one.wavefronts - one.passes)
            )
            for at, one in some.items()
        }
    )
    work = dataclasses.replace(mended.work, issued=more)
    first = worst(some.values(), lambda one: one.passes)
    there = [one for one in some.values() if one.site.line == first.user_line]
    fields = {"passes": sum(one.passes + one.requests for one in there)}
    return Change(dataclasses.replace(mended, work=work), first, fields)

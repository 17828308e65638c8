"""Defects of how threads work together: which launches have them, and what these are without."""

from __future__ import annotations

import dataclasses
import math

from kernels.ptx.module import Instruction

from ..compile.blocks import successors
from ..gpus.occupancy import occupancy as occupancy_of
from .case import Case, counted
from .change import Change, places, worst
from .work import SiteWork, scaled

_BUSY = 0.25
"""Share of its warps from which on a multiprocessor is not short of blocks."""
_SHUFFLES = 5
"""That sum a warp."""
_SUMS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""Operations of which a block can do several as one."""


def occupancy(case: Case) -> Change | None:
    """Few warps fit on a multiprocessor, so that all of them wait at once."""
    held, launch, gpu = case.seen.occupancy, case.launch, case.seen.gpu
    threads = math.prod(launch.block)
    wanted = min(2 * held.blocks, gpu.architecture.warps // case.shape.warps)
    if wanted <= held.blocks or held.registers is None:
        return None
    cures = []
    if "registers" in held.limiters:
        fits = (n for n in range(held.registers, 15, -1)
                if (occupancy_of(gpu, threads, n).limits["registers"] or 0) >= wanted)  # fmt: skip
        most = next(fits, 16)
        cures.append(f"{most} registers a thread or fewer instead of {held.registers} "
                     f"(__launch_bounds__({threads}, {wanted}))")  # fmt: skip
    if "shared memory" in held.limiters:
        chip = gpu.architecture
        most = chip.shared_bytes // wanted - chip.shared_reserved
        cures.append(f"{most:,} bytes of shared memory a block instead of {launch.shared_bytes:,}")
    if "blocks" in held.limiters:
        cures.append(f"larger blocks than {threads} threads")
    told = {
        "warps": held.warps, "most": held.most_warps, "limiter": " and ".join(held.limiters),
        "cure": ", and ".join(cures),
    }  # fmt: skip
    shape = dataclasses.replace(case.shape, resident=wanted)
    return Change(dataclasses.replace(case, shape=shape), None, told)


def few_blocks(case: Case) -> Change | None:
    """The grid leaves multiprocessors without a block, or with fewer than they can hold."""
    gpu, shape = case.seen.gpu, case.shape
    blocks = len(case.seen.sample.blocks)
    rounds = max((piece.rounds / blocks for piece in case.found), default=1.0)
    slots = gpu.sms * shape.resident
    there = -(-shape.blocks // gpu.sms) * shape.warps
    busy = shape.blocks >= gpu.sms and there >= _BUSY * gpu.architecture.warps
    if shape.blocks >= slots or busy:
        return None
    in_rounds = max(1.0, min(slots / shape.blocks, rounds))
    in_warps = max(1.0, min(slots / shape.blocks / in_rounds, shape.warps))
    pieces = in_rounds * in_warps
    if pieces < 1.5:
        return None
    found = [
        dataclasses.replace(p, warps=p.warps / pieces, rounds=p.rounds / in_rounds)
        for p in case.found
    ]
    mended = case.with_code(found)
    sites = [scaled(one, 1 / pieces) for one in case.work.sites]
    work = dataclasses.replace(
        mended.work, sites=sites, barriers=case.work.barriers / pieces,
        atomic_passes=case.work.atomic_passes / pieces,
        shared_conflicts=case.work.shared_conflicts / pieces,
    )  # fmt: skip
    wanted = round(shape.blocks * pieces)
    warps = max(1, round(shape.warps / in_warps))
    split = dataclasses.replace(shape, blocks=wanted, warps=warps)
    counted_blocks = "1 block" if shape.blocks == 1 else f"{shape.blocks:,} blocks"
    told = {"blocks": counted_blocks, "sms": gpu.sms, "wanted": wanted}
    return Change(dataclasses.replace(mended, work=work, shape=split), None, told)


def divergence(case: Case) -> Change | None:
    """Warps go both ways at a branch: as many threads would fit into fewer warps."""
    sample, program = case.seen.sample, case.launch.program
    if not sample.ran.divergent_branches:
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
    mended = case.with_code(counted(case.seen, fewer, rounds))
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


def _branch_to(case: Case, number: int) -> Instruction | None:
    """The branch that sends threads to a basic block, or to another."""
    blocks = case.launch.program.blocks
    for block in blocks:
        ways = successors(block.block)
        if number in ways and len(set(ways)) > 1 and block.block.instructions:
            return block.block.instructions[-1]
    return next((b.block.instructions[0] for b in blocks if b.number == number), None)


def atomics(case: Case) -> Change | None:
    """Many atomics of a block go to few places."""
    some, distinct, others = _atomics(case)
    work = case.work
    passes = work.atomic_passes - others
    if not some or passes < 2 * distinct:
        return None
    changed = {
        at: dataclasses.replace(one, space="shared", wavefronts=one.requests)
        for at, one in some.items()
    }
    mended = case.with_sites(changed)
    further = case.seen.sample.atomics.same / len(case.seen.sample.blocks)
    if passes <= sum(one.requests for one in some.values()) * 1.01:
        further = 0.0  # ptxas sums the warp
    after = dataclasses.replace(
        mended.work, atomic_passes=others + distinct,
        shared_conflicts=work.shared_conflicts + further,
    )  # fmt: skip
    first = worst(some.values(), lambda one: one.requests)
    return Change(dataclasses.replace(mended, work=after), first, {"passes": passes})


def atomics_of_blocks(case: Case) -> Change | None:
    """Each of many blocks adds to the same few places."""
    some, distinct, others = _atomics(case)
    work, shape = case.work, case.shape
    slots = case.seen.gpu.sms * shape.resident
    if not some or work.atomic_passes - others >= 2 * distinct or shape.blocks <= slots:
        return None
    times = shape.blocks / slots
    found = [
        dataclasses.replace(p, warps=p.warps * times, rounds=p.rounds * times) for p in case.found
    ]
    mended = case.with_code(found)
    sites = [one if one in some.values() else scaled(one, times) for one in work.sites]
    after = dataclasses.replace(mended.work, sites=sites)
    fewer = dataclasses.replace(shape, blocks=slots)
    first = worst(some.values(), lambda one: one.requests)
    told = {"blocks": shape.blocks, "slots": slots}
    return Change(dataclasses.replace(mended, work=after, shape=fewer), first, told)


def _atomics(case: Case) -> tuple[dict[int, SiteWork], int, float]:
    """Sums in global memory, to how many sectors a block's go, and how many atomics are none."""
    found = places(case, lambda one: one.space == "global" and one.site.access == "atomic")
    some = {at: one for at, one in found.items() if _sums(case, one)}
    distinct = sum(case.block.places.get(one.site.number, 0) for one in some.values())
    others = sum(one.requests for at, one in found.items() if at not in some)
    return (some, distinct, others) if distinct else ({}, 0, others)


def _sums(case: Case, one: SiteWork) -> bool:
    """Whether a block could do fewer of an atomic: not of a lock's, nor of one lane's ticket."""
    ran, site = case.seen.sample.ran, one.site
    alone = ran.threads[site.block] <= ran.warps[site.block]
    return site.operation in _SUMS and not (site.returns and alone)


def shared_atomics(case: Case) -> Change | None:
    """Lanes of a warp go to one word of shared memory."""
    some = places(case, lambda one: one.space == "shared" and one.site.access == "atomic")
    requests = sum(one.requests for one in some.values())
    work = case.work
    if not all(_sums(case, one) for one in some.values()):
        return None
    if not some or work.shared_conflicts < 3 * requests:
        return None
    more = dict(work.issued)
    more["shuffle"] = more.get("shuffle", 0.0) + _SHUFFLES * requests
    more["alu"] = more.get("alu", 0.0) + _SHUFFLES * requests
    after = dataclasses.replace(work, shared_conflicts=0.0, issued=more)
    first = worst(some.values(), lambda one: one.requests)
    told = {"passes": work.shared_conflicts + requests}
    return Change(dataclasses.replace(case, work=after), first, told)

"""Defects of what is loaded again and again, and of registers that do not suffice."""

from __future__ import annotations

import dataclasses

from ...caches.levels import l1_hits
from ..model_input import PredictionCase
from ..work import SiteWork
from .change import Change, places, plain, worst

_TIMES = 3.0
"""How often the same has to be loaded before it pays to keep it."""
_MORE = 4
"""Results a block or thread computes from what it loads, where it computes one."""


def redundant(case: PredictionCase) -> Change | None:
    """A block asks for the same sectors again and again: a tile in shared memory has them."""
    block, changed, more = case.block, {}, []
    loads = places(case, lambda one: plain(one) and l1_hits(one.site))
    extra = dict(case.work.issued)
    times: dict[int, float] = {}
    for array, distinct in block.sectors.items():
        some = {at: one for at, one in loads.items() if block.arrays.get(one.site.number) == array}
        ideal = sum(one.ideal for one in some.values())
        if not distinct or ideal < _TIMES * distinct:
            continue
        for at, one in some.items():
            times[at] = ideal / distinct
            changed[at] = dataclasses.replace(one, space="shared", wavefronts=one.requests)
            if case.observed.sample.requests.strides.get(one.site.number) == 0:
                # All lanes want the same: of a tile, ptxas loads four in a row at once.
                rest = one.requests / 4
                changed[at] = dataclasses.replace(
                    changed[at], requests=rest, wavefronts=2 * rest, bytes=one.bytes / 4
                )
                extra["load_global"] = extra.get("load_global", 0.0) - 3 * rest
        requests, site = distinct / 4, next(iter(some.values())).site
        missed = min(distinct, sum(one.missed for one in some.values()))
        more.append(SiteWork(
            site, "global", requests, distinct, requests, requests, missed, distinct, 0, 0,
            distinct * 32, distinct,
        ))  # fmt: skip
        more.append(
            SiteWork(site, "shared", requests, 0, 0, 0, 0, 0, requests, 0, distinct * 32, 0)
        )
        for pipe in ("load_global", "store_shared", "imad", "alu"):
            extra[pipe] = extra.get(pipe, 0.0) + requests
    if not changed:
        return None
    mended = case.with_sites(changed, *more)
    work = dataclasses.replace(mended.work, issued=extra)
    first = worst([case.work.sites[at] for at in changed], lambda one: one.requests)
    there = [at for at in times if case.work.sites[at].site.line == first.user_line]
    fields = {"times": max(times[at] for at in there)}
    return Change(dataclasses.replace(mended, work=work), first, fields)


def _dense(one: SiteWork) -> bool:
    return plain(one) and one.sectors < 2 * one.ideal


def between_blocks(case: PredictionCase) -> Change | None:
    """Blocks ask L2 for what other blocks ask for too."""
    arrays, asked = case.block.arrays, dict[int | None, float]()
    for one in case.work.loads:
        array = arrays.get(one.site.number)
        asked[array] = asked.get(array, 0.0) + one.missed * 32 * case.shape.blocks
    # Of an array so small that none of it is in the sample nothing is known.
    times = {a: asked.get(a, 0.0) / there for a, there in case.observed.memory.arrays.items()}

    def often(one: SiteWork) -> float:
        return times.get(arrays.get(one.site.number, -1), 0.0)

    loads = places(
        case,
        lambda one: (
            one.site.access == "load" and one.missed > 0 and _dense(one) and often(one) >= _TIMES
        ),
    )
    if not loads:
        return None
    changed = {at: dataclasses.replace(one, missed=one.missed / _MORE) for at, one in loads.items()}
    first = worst(loads.values(), lambda one: one.missed)
    fields = max(often(one) for one in loads.values() if one.site.line == first.user_line)
    tiled = any(one.space == "shared" and one.site.access == "store" for one in case.work.sites)
    change = "larger tiles" if tiled else "more results a block"
    return Change(case.with_sites(changed), first, {"times": fields, "change": change})


def again(case: PredictionCase) -> Change | None:
    """Loads and stores in a loop that go to one place in all of its rounds."""
    counts = case.observed.sample.requests

    def share(one: SiteWork) -> float:
        ran = counts.executed[one.site.number]
        return counts.again[one.site.number] / ran if ran > 3 else 0.0

    some = places(case, lambda one: plain(one) and share(one) >= 0.5)
    if not some:
        return None
    lines = {one.site.instruction.line for one in some.values()}
    changed = {}
    for at, one in some.items():
        rest = 1 - share(one)
        figures = ("requests", "sectors", "lines", "tags", "missed", "bytes", "ideal")
        changed[at] = dataclasses.replace(one, **{f: rest * getattr(one, f) for f in figures})
    first = worst(some.values(), lambda one: one.requests)
    share_used = max(share(one) for one in some.values() if one.site.line == first.user_line)
    mended = case.without(lambda i: i.line in lines and i.pipe in ("load_global", "store_global"))
    return Change(mended.with_sites(changed), first, {"share": share_used})


def operands(case: PredictionCase) -> Change | None:
    """Each multiply-add loads its operands from shared memory, which others load as well."""
    loads = places(case, lambda one: one.space == "shared" and one.site.access == "load")
    stored = sum(
        one.requests
        for one in case.work.sites
        if one.space == "shared" and one.site.access == "store"
    )
    requests = sum(one.requests for one in loads.values())
    ran = case.observed.sample.ran.warps
    products = sum(
        ran[entry.block]
        for entry in case.launch.program.arithmetic
        if (entry.count or "").startswith("fma")
    ) / len(case.observed.sample.blocks)
    if not loads or not products or requests < max(_TIMES * stored, 0.9 * products):
        return None
    changed = {
        at: dataclasses.replace(
            one,
            requests=one.requests / _MORE,
            wavefronts=one.wavefronts / _MORE,
            bytes=one.bytes / _MORE,
        )
        for at, one in loads.items()
    }
    mended = case.with_sites(changed)
    fewer = dict(case.work.issued)
    fewer["load_shared"] = fewer.get("load_shared", 0.0) / _MORE
    work = dataclasses.replace(mended.work, issued=fewer)
    first = worst(loads.values(), lambda one: one.wavefronts)
    return Change(dataclasses.replace(mended, work=work), first, {"each": requests / products})


def spills(case: PredictionCase) -> Change | None:
    """Registers that the compiler keeps in local memory."""
    known = {one.site.instruction.line for one in case.work.sites if one.space == "local"}

    def own(pipe: str, line: int) -> bool:
        return pipe in ("load_local", "store_local") and line not in known

    counts: dict[int, float] = {}
    for piece in case.found:
        for i in piece.code:
            if own(i.pipe, i.line):
                counts[i.line] = counts.get(i.line, 0.0) + piece.warps
    if not sum(counts.values()):
        return None
    busiest = max(counts, key=lambda line: counts[line])
    there = {
        ins.line: ins for block in case.launch.program.blocks for ins in block.block.instructions
    }
    share = sum(counts.values()) / len(case.observed.sample.blocks) / sum(case.work.issued.values())
    return Change(case.without(lambda i: own(i.pipe, i.line)), there.get(busiest), {"share": share})

"""Defects of memory accesses: which launches have them, and what these are without."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from kernels.ptx.module import Instruction

from ...caches.access_recorder import SETS
from ...hazards.sources import Sources
from ...observe.counters.banks import BANKS
from ..model_input import PredictionCase
from ..work import SiteWork, repeated, scaled
from .change import Change, places, plain, worst

_WASTE, _SHIFTED = 1.25, 1.1
"""Sectors over those that would do from which on lanes stand apart, or rows begin inside one."""
_ARITHMETIC = ("fma", "half", "fp64", "tensor", "sfu")
_MIN_DISTANCE = 3
"""Sectors of a request beyond those that would do: two rows of a tile are no defect."""
_BUILT_IN = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]\b")
_FIELD = re.compile(
    r"[\w)\]]\s*(?:->|(?<!\d)\.)\s*[A-Za-z_]\w*"  # p[i].x, p->x
    r"|\[[^][]*(?:\b\d+[uUlL]*\s*\*|\*\s*\d)"  # p[3 * i + 1]
    r"|\[[^][]*,\s*\d+\s*\]"  # Python's p[i, 1]
)
_STRUCTURE = 128
"""Bytes that elements of an array of structures may have."""
_WIDER = 4
"""Elements a thread loads at once, where it loads narrow ones."""


def _stride(case: PredictionCase, one: SiteWork) -> int | None:
    found = case.observed.sample.requests.strides.get(one.site.number, 0)
    return None if found is None else abs(found)


def _distance_text(case: PredictionCase, one: SiteWork) -> str:
    """Return how the lanes of a wasteful access stand; empty if it wastes little."""
    stride, width = _stride(case, one), one.site.nbytes
    if not plain(one) or one.sectors < _SHIFTED * one.ideal:
        return ""
    if stride == width and one.sectors <= one.ideal + 1.1 * one.requests:
        return "unaligned"
    if one.sectors < _WASTE * one.ideal or one.sectors - one.ideal < _MIN_DISTANCE * one.requests:
        return ""
    return "strided" if stride is not None and stride > width else "scattered"


def strided(case: PredictionCase) -> Change | None:
    """Lanes stand evenly apart, further than they are wide."""
    return _compact(case, places(case, lambda one: _distance_text(case, one) == "strided"))


def scattered(case: PredictionCase) -> Change | None:
    """Lanes go anywhere."""
    return _compact(case, places(case, lambda one: _distance_text(case, one) == "scattered"))


def unaligned(case: PredictionCase) -> Change | None:
    """Lanes stand side by side, but begin inside a sector, wherever the array is accessed."""
    array = case.block.arrays
    aligned = {
        array.get(one.site.number)
        for one in case.work.sites
        if plain(one) and one.sectors < _SHIFTED * one.ideal
    }

    def wanted(one: SiteWork) -> bool:
        return (
            _distance_text(case, one) == "unaligned" and array.get(one.site.number) not in aligned
        )

    return _compact(case, places(case, wanted))


def _compact(case: PredictionCase, some: Mapping[int, SiteWork]) -> Change | None:
    """The same bytes side by side: as few sectors, and L1 misses none of them twice."""
    if not some:
        return None
    block, changed, touched, asked = case.block, {}, 0.0, 0.0
    groups: dict[int | None, dict[int, SiteWork]] = {}
    for at, one in some.items():
        groups.setdefault(block.arrays.get(one.site.number), {})[at] = one
    for array, members in groups.items():
        ideal = sum(one.ideal for one in members.values())
        missed = min(ideal, sum(one.missed for one in members.values()))
        touched += block.sectors.get(array, 0) if array is not None else 0
        asked += min(ideal, block.sectors.get(array, 0) if array is not None else 0)
        for at, one in members.items():
            lines = max(one.requests, one.ideal / 4)
            changed[at] = dataclasses.replace(
                one, sectors=one.ideal, lines=lines, tags=max(one.requests, lines / SETS),
                missed=missed * one.ideal / ideal, touched=one.ideal,
            )  # fmt: skip
    first = worst(some.values(), lambda one: one.sectors - one.ideal)
    shown = [one for one in some.values() if one.site.instruction is first]
    requests = sum(one.requests for one in shown)
    stride = _stride(case, shown[0]) or 0
    fields = {
        "stride": stride,
        "change": "keep each field in an array of its own"
        if stride <= _STRUCTURE and _takes_field(case, first)
        else "let neighbouring lanes take neighbouring elements",
        "each": sum(one.sectors for one in shown) / requests,
        "ideal": sum(one.ideal for one in shown) / requests,
    }
    everything = sum(block.sectors.values())
    dense = 1 - (touched - asked) / everything if everything else 1.0
    return Change(case.with_sites(changed, dense=dense), first, fields)


def _takes_field(case: PredictionCase, ins: Instruction) -> bool:
    """Whether an access is of a field: of a structure, or of so many elements that are one."""
    sources = Sources(case.launch.kernel.source_text)
    code = sources.code(ins.location.user if ins.location else None)
    return bool(_FIELD.search(_BUILT_IN.sub("", code)))


def small(case: PredictionCase) -> Change | None:
    """Warps ask for less than a sector or two at a time, side by side."""
    some = places(
        case,
        lambda one: plain(one) and one.site.nbytes <= 2 and _stride(case, one) == one.site.nbytes,
    )
    if not some:
        return None
    first = worst(some.values(), lambda one: one.requests)
    width = next(one.site.nbytes for one in some.values() if one.site.instruction is first)
    starts = case.observed.sample.requests.starts
    whole = all(starts[one.site.number] % (_WIDER * width) == 0 for one in some.values())
    change = f"let a thread take {_WIDER} elements at once"
    if not whole:
        change = f"pad rows to multiples of {_WIDER * width} bytes, and {change}"
    fields = {"requests": 32 * width, "change": change}
    once = all(one.requests <= case.shape.warps * 1.01 for one in some.values())
    if once:
        return Change(_fewer_threads(case, some), first, fields)
    changed = {at: _widened(one, 1 / _WIDER) for at, one in some.items()}
    lines = {one.site.instruction.line for one in some.values()}
    found = []
    for piece in case.found:
        if any(i.line in lines and i.width for i in piece.code):
            sums = [i for i in piece.code if i.pipe in _ARITHMETIC]
            rest = [i for i in piece.code if i.pipe not in _ARITHMETIC]
            found.append(dataclasses.replace(piece, code=sums, rounds=0.0))
            fewer = piece.warps / _WIDER, piece.rounds / _WIDER
            found.append(dataclasses.replace(piece, code=rest, warps=fewer[0], rounds=fewer[1]))
        else:
            found.append(piece)
    return Change(case.with_sites(changed).with_code(found), first, fields)


def _widened(one: SiteWork, share: float) -> SiteWork:
    """An access of several elements a thread, by that share of the threads."""
    requests, more = one.requests * share, share * _WIDER
    return dataclasses.replace(
        one, requests=requests, tags=requests, sectors=one.ideal * more, ideal=one.ideal * more,
        missed=one.missed * more, touched=one.touched * more, bytes=one.bytes * more,
        lines=max(requests, one.bytes * more / 128),
    )  # fmt: skip


def _fewer_threads(case: PredictionCase, some: Mapping[int, SiteWork]) -> PredictionCase:
    """A grid of which each thread does several elements; what it does for each stays."""
    changed = {
        at: _widened(one, 1.0) if at in some else scaled(one, _WIDER)
        for at, one in enumerate(case.work.sites)
    }
    issued = {
        pipe: count * (_WIDER if pipe in _ARITHMETIC else 1)
        for pipe, count in case.work.issued.items()
    }
    mended = case.with_sites(changed)
    sites = mended.work.sites
    work = dataclasses.replace(repeated(case.work, _WIDER), sites=sites, issued=issued)
    shape = dataclasses.replace(case.shape, blocks=-(-case.shape.blocks // _WIDER))
    return dataclasses.replace(mended, work=work, shape=shape)


def _conflicting(one: SiteWork) -> bool:
    return one.space == "shared" and one.conflicts > 0 and one.site.access != "atomic"


def conflicts(case: PredictionCase) -> Change | None:
    """Lanes of a request go to different words of one bank."""
    some = places(case, _conflicting)
    if not some:
        return None
    wide = {at: max(1, one.site.nbytes // 8) for at, one in some.items()}
    changed = {
        at: dataclasses.replace(
            one, conflicts=0.0,
            wavefronts=max(one.wavefronts - one.conflicts, one.requests * wide[at]),
        )
        for at, one in some.items()
    }  # fmt: skip
    first = worst(some.values(), lambda one: one.conflicts)
    shown = next(one for one in some.values() if one.site.instruction is first)
    whole = sum(one.wavefronts for one in case.work.sites if one.space == "shared")
    more = sum(one.wavefronts - changed[at].wavefronts for at, one in some.items())
    words, step = (_stride(case, shown) or 0) // 4, max(1, shown.site.nbytes // 4)
    change = "pad its rows, or spread its lanes over the banks by xor"
    if words >= BANKS // 16 and words % 2 == 0:
        change = f"pad the row from {words} to {words + step} words"
    ways = shown.wavefronts / max(1.0, shown.wavefronts - shown.conflicts)
    return Change(
        case.with_sites(changed), first, {"ways": ways, "share": more / whole, "change": change}
    )

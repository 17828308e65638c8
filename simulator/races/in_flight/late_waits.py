"""Waits that come too late in program order: after a possible access to the copy's bytes."""

from collections.abc import Sequence

from kernels.ptx.module import Instruction

from ...compile.cfg.basic_blocks import Block
from ...isa.decoded import calls, roles
from ...memory.site import Site
from ..report.race_log import RaceLog


class LateWaits:
    """Whether a wait follows an access that follows a copy (``ProgramOrder.strays``).

    Accesses without a copy, wait or call between them share one answer: an unrolled loop has
    hundreds of them.
    """

    def __init__(self, race_log: RaceLog) -> None:
        self.race_log = race_log
        self._known: dict[tuple[int, int], bool] = {}
        self._some: list[Site] = []

    def any(self, copy: Site, wait: Instruction) -> bool:
        """Whether any access lies between a copy and a wait."""
        key = copy.whole, id(wait)  # parts of one instruction stand at one place
        found = self._known.get(key)
        if found is None:
            order = self.race_log.find_order()
            self._some = self._some or _one_of_each(self.race_log.sites, order.blocks)
            found = any(order.wait_follows_access(copy, site, wait) for site in self._some)
            self._known[key] = found
        return found


def _one_of_each(sites: Sequence[Site], blocks: Sequence[Block]) -> list[Site]:
    """Return one access of each run without a copy or wait in between."""
    copies = {id(site.instruction) for site in sites if site.asynchronous}
    pieces: dict[int, int] = {}
    for number in {site.block for site in sites}:
        piece = 0
        for ins in blocks[number].instructions:
            row = roles(ins).row
            between = id(ins) in copies or row.asynchronous or row.phase or calls(ins)
            piece += bool(between)
            pieces[id(ins)] = piece
            piece += bool(between)
    found: dict[object, Site] = {}
    for site in sites:
        ins = site.instruction
        at = ins.location.user if ins.location else None
        place = site.block, pieces[id(ins)], at and (at.file, at.line)
        found.setdefault((*place, site.access, site.space, site.asynchronous), site)
    return list(found.values())

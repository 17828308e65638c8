"""Story of one run, as the tables from which the page draws."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from simulator import Run
from simulator.observe.trace.access_counts import ArrayMap
from simulator.observe.trace.trace import Batch

from ..pool import Pool
from .beats import Beats, beats_of
from .kernel_text import kernel_lines
from .layout import BlockFacts, StageLayout, layout_of
from .moments import cause_of, moments_of
from .reach import BlockReach, copied_elements, reach_of, shared_reads, use_counts
from .recorded import RecordedBlock, Recording
from .roles import ATOMIC, KEEP, READ, RELEASE, is_quiet, roles_of
from .rows import MAX_ROWS, SHARED_ROW, MemoryRow, rows_of
from .sentence import Facts, sentences
from .steps import StorySteps, steps_of

_HUES = (0, 1, 3, 4)
"""Hues of inputs in their order; results have hue 2."""


class ShownSteps(NamedTuple):
    """Blocks of a batch that the page has, and its first events.

    Attributes:
        batch: The recorded batch.
        blocks: Linear numbers of the blocks.
        taken: Number of events.
        sectors: Sectors of global memory that each event moves, by block, or ``None``.
    """

    batch: Batch
    blocks: list[int]
    taken: int
    sectors: Sequence[Any]


class Teller:
    """Builder of a run's story. The facts of each block are computed once.

    Attributes:
        arrays: Global arrays, as in the page's data.
        shared: Shared variables, likewise.
        watched: Recorded instructions, likewise.
        sources: Source files, likewise.
    """

    def __init__(
        self, run: Run, watched: Sequence[dict[str, Any]], arrays: Sequence[dict[str, Any]],
        shared: Sequence[dict[str, Any]], sources: Sequence[dict[str, Any]],
    ) -> None:  # fmt: skip
        assert run.trace is not None
        self.run, self.trace = run, run.trace
        self.arrays, self.shared, self.watched, self.sources = arrays, shared, watched, sources
        self.every = run.trace.program.watched or []
        self.extent = tuple(run.trace.block[::-1])
        self.roles = roles_of(run.trace, watched, shared)
        self.maps: dict[int, ArrayMap] = {
            item["place"]: run.trace.maps[item["place"]] for item in arrays
        }
        self.quiet = [is_quiet(w, s) for w, s in zip(self.every, watched, strict=True)]
        self.hues = self._hues()
        self.variables = [self.hues.get(place, 2) for place in self.roles.sources]
        self._known: dict[tuple[int, int], tuple[StorySteps, Beats, BlockReach]] = {}
        self._beats: dict[tuple[bytes, int], Beats] = {}

    def _hues(self) -> dict[int, int]:
        """Assign blue, yellow, violet and grey-brown to inputs in order, and green to outputs."""
        found: dict[int, int] = {}
        inputs = [n for n, m in self.maps.items() if m.reads.any() and not m.writes.any()]
        for i, place in enumerate(inputs):
            found[place] = _HUES[i % len(_HUES)]
        for place, item in self.maps.items():
            if item.writes.any():
                found[place] = 2
        return found

    def tell(self, batches: Sequence[ShownSteps], pool: Pool) -> dict[str, Any]:
        """Return the story of some blocks and of the first events of each batch."""
        found: list[tuple[Batch, StorySteps, Beats, BlockReach]] = []
        moved: list[Sequence[Any]] = []
        for batch, blocks, count, sectors in batches:
            found += self._blocks(batch, blocks, count)
            for place in range(len(blocks)):
                moved.append([one if one is None else one[place % len(one)] for one in sectors])
        full = any(part.batch.full or part.taken < len(part.batch.events) for part in batches)
        layout = self.layout([part[1:] for part in found], full)
        first = next((part for part in found), None)
        rows: list[list[MemoryRow]] = []
        if layout.name == "rows":
            rows = [self._rows(layout, batch, steps) for batch, steps, _, _ in found]
        facts = self._facts(layout, [part[1:] for part in found], rows[0] if rows else [], full)
        title, more = sentences(facts)
        inner = found[self._inner([part[3] for part in found])] if found else None
        reads = (
            shared_reads(inner[0], inner[1], self.roles, self.shared, self.extent) if inner else {}
        )
        recording = Recording(
            self.run, [RecordedBlock(batch, steps) for batch, steps, _, _ in found], self.roles,
            self.watched, self.arrays, self.shared, self.extent, self.hues,
        )  # fmt: skip
        return {
            "moments": moments_of(recording),
            "cause": cause_of(self.run),
            "shared": [
                {"variable": variable, "reads": pool.add(counts.astype(np.int32)),
                 "uses": use_counts(counts),
                 "block": inner[1].block if inner else 0}
                for variable, counts in sorted(reads.items())
            ],
            "layout": layout.name, "inputs": list(layout.inputs), "outputs": list(layout.outputs),
            "variable": layout.variable, "ragged": facts.ragged,
            "code": kernel_lines(self.watched, self.quiet, self.sources),
            "hues": {str(place): hue for place, hue in self.hues.items()},
            "variables": self.variables, "sources": self.roles.sources,
            "acts": self.roles.acts, "running": self.roles.values, "quiet": self.quiet,
            "ranges": {str(place): value_range(item) for place, item in self.maps.items()},
            "title": title, "more": more,
            "shapes": {str(n): shape for n, shape in self.roles.shapes.items()},
            "depth": self._depth(layout, found), "copies": any(self.roles.copies),
            "uses": {
                str(item["place"]): use_counts(self.maps[item["place"]].reads)
                for item in self.arrays
                if item["drawn"]
            },
            "blocks": [
                self._packed(steps, beats, reach, rows[i] if rows else [], moved[i], pool)
                for i, (_, steps, beats, reach) in enumerate(found)
            ] if first else [],
        }  # fmt: skip

    def _blocks(
        self, batch: Batch, blocks: list[int], count: int
    ) -> list[tuple[Batch, StorySteps, Beats, BlockReach]]:
        new = [block for block in blocks if (block, count) not in self._known]
        columns = [batch.blocks.index(block) for block in new]
        for steps in steps_of(batch, self.roles, columns, self.extent, count) if new else []:
            key = steps.key, count
            if key not in self._beats:
                copied = copied_elements(batch, steps, self.roles, self.maps)
                self._beats[key] = beats_of(steps, self.roles, self.hues, self.variables, copied)
            beats = self._beats[key]
            reach = reach_of(batch, steps, beats, self.roles, self.maps, self.extent)
            self._known[steps.block, count] = steps, beats, reach
        return [(batch, *self._known[block, count]) for block in blocks]

    def layout(
        self, found: Sequence[tuple[StorySteps, Beats, BlockReach]], full: bool
    ) -> StageLayout:
        """Choose the layout; ``full``: the recording stopped before the blocks finished."""
        blocks = []
        tensor = bool(self.roles.shapes)
        running = np.array([*self.roles.running, False])
        for steps, _, reach in found:
            weight = steps.lanes.sum(axis=1, dtype=np.int64)
            terms = int(weight[running[steps.watched]].sum())
            blocks.append(BlockFacts(reach, terms, self._rewrites(steps), tensor, full))
        atomics = any(
            act == ATOMIC and self.roles.place[n] >= 0 for n, act in enumerate(self.roles.acts)
        )
        return layout_of(self.maps, self.roles, blocks, atomics)

    def _depth(
        self, layout: StageLayout, found: Sequence[tuple[Batch, StorySteps, Beats, BlockReach]]
    ) -> int:
        """Return k of the matrix product of a step, if each warp's products add up to all of k."""
        depths = {shape[2] for shape in self.roles.shapes.values()}
        if layout.name != "product" or len(depths) != 1 or not found:
            return 0
        steps = found[0][1]
        products = np.isin(steps.watched, list(self.roles.products))
        counts = {int(n) for n in (steps.lanes[products] > 0).sum(axis=0)} - {0}
        (depth,) = depths
        walked = {count * depth for count in counts}
        return depth if walked == {self.maps[layout.inputs[0]].shape[1]} else 0

    def _rewrites(self, steps: StorySteps) -> dict[int, int]:
        """Count the barrier intervals in which each shared variable is rewritten from itself."""
        found: dict[int, int] = {}
        read: set[int] = set()
        written: set[int] = set()
        for watched, act in zip(steps.watched.tolist(), steps.acts.tolist(), strict=True):
            if act == RELEASE:
                for variable in written:
                    found[variable] = found.get(variable, 0) + 1
                read, written = read - written, set()
            elif act == READ:
                read.add(self.roles.variable[watched])
            elif act == KEEP:
                variable = self.roles.variable[watched]
                if variable in read and watched in self.roles.computed:
                    written.add(variable)
        return found

    def _rows(self, layout: StageLayout, batch: Batch, steps: StorySteps) -> list[MemoryRow]:
        item = self.shared[layout.variable]
        width = min(1024, int(np.prod(item["shape"][-1:] or [1])))
        found = rows_of(
            batch, steps, self.roles, self.maps, layout.variable, item["start"], item["size"],
            width, item["kind"], self.extent,
        )  # fmt: skip
        names = {one["place"]: one["name"] for one in self.arrays} | {SHARED_ROW: item["name"]}
        for row in found:
            row.name = row.name or names[row.place]
        return found

    @staticmethod
    def _inner(reached: Sequence[BlockReach]) -> int:
        """Return the place of a middle block, because the first and the last are at an edge.

        Blocks that write nothing stand for no others, unless all are of that kind.
        """
        all_places = range(len(reached))
        at_work = [n for n in all_places if any(map(len, reached[n].written.values()))]
        some = at_work or all_places
        return some[len(some) // 2] if len(some) > 2 else some[0]

    def _facts(
        self,
        layout: StageLayout,
        found: Sequence[tuple[StorySteps, Beats, BlockReach]],
        rows: Sequence[MemoryRow],
        full: bool,
    ) -> Facts:
        names = {item["place"]: item["name"] for item in self.arrays}
        facts = Facts(self.run, layout, self.maps, names, self.hues, rows=rows)
        facts.guarded = bool(self.roles.constant)
        if not found:
            return facts
        if len(rows) < MAX_ROWS and not full:
            facts.barriers = len(found[0][1].releases)
        inner = found[self._inner([part[2] for part in found])]
        _, beats, reach = inner
        facts.phases = max((number for _, _, number in beats.phases), default=1)
        facts.loads, facts.reads = beats.loads[-1], beats.reads[-1]
        facts.values = sum(len(elements) for place, elements in reach.read.items()
                           if place in layout.inputs)  # fmt: skip
        read = {self.roles.variable[n] for n, act in enumerate(self.roles.acts) if act == READ}
        facts.copied = all(n < 0 or self.roles.sources[n] in layout.inputs for n in read)
        shares = [
            {n: len(part) for n, part in {**other.read, **other.written}.items()}
            for _, _, other in found
        ]
        inner_shares = shares[:-1] or shares
        facts.shares = {
            n: k
            for n, k in shares[0].items()
            if all(share.get(n) == k for share in inner_shares) and shares[-1].get(n, 0) <= k
        }
        facts.has_smaller_last = any(shares[-1].get(n) != k for n, k in facts.shares.items())
        facts.made = sum(len(elements) for elements in reach.written.values())
        last, _, after = found[-1]
        facts.last_made = sum(len(elements) for elements in after.written.values())
        gx, gy, _ = self.run.grid
        at = last.block % gx, last.block // gx % gy, last.block // (gx * gy)
        facts.last_block = f"({', '.join(map(str, at[: 3 if at[2] else 2]))})".replace(" ", "")
        if layout.name == "product":
            own = {w[0] for w in found[0][2].windows if w[1] == layout.inputs[0] and not w[2]}
            facts.phases = max(1, len(own))
        return facts

    def _products(self, steps: StorySteps) -> list[tuple[int, int]]:
        """Return warp and step of each matrix product by tensor cores."""
        products = np.flatnonzero(np.isin(steps.watched, list(self.roles.products)))
        return [
            (warp, step)
            for step in products.tolist()
            for warp in np.flatnonzero(steps.lanes[step]).tolist()
        ]

    def _packed(
        self,
        steps: StorySteps,
        beats: Beats,
        reach: BlockReach,
        rows: Sequence[MemoryRow],
        sectors: Sequence[Any],
        pool: Pool,
    ) -> dict[str, Any]:
        def table(found: Sequence[Sequence[int]], width: int) -> int:
            return pool.add(np.array(found, np.int32).reshape(-1, width))

        def array(found: Sequence[int]) -> int:
            return pool.add(np.array(found, np.int32))

        made: dict[str, Any] = {
            "block": steps.block, "count": len(steps.acts),
            "beats": table(beats.beats, 5),
            "distinct": array(reach.of_beats),
            "segments": table(beats.segments, 4),
            "phases": [
                (*phase, reach.distinct.get(number, 0), _moved(steps, sectors, phase), name)
                for number, (phase, name) in enumerate(
                    zip(beats.phases, phase_names(beats.phases, rows), strict=True)
                )
            ], "releases": beats.releases,
            "loads": array(beats.loads),
            "reads": array(beats.reads),
            "windows": [list(map(int, row)) for row in reach.windows],
            "products": table(self._products(steps), 2),
        }  # fmt: skip
        if rows:
            made["rows"] = [
                {
                    "place": row.place, "first": row.first, "width": len(row.values),
                    "reach": row.reach, "made": bool(row.round),
                    "combined": [
                        (name, array(elements)) for name, elements in row.combined.items()
                    ],
                    "name": row.name, "what": row.what,
                    "values": pool.add(row.values),
                    "edges": table(sorted(set(row.edges)), 2), "count": len(set(row.edges)),
                }
                for row in rows
            ]  # fmt: skip
        return made


def phase_names(phases: Sequence[tuple[int, int, int]], rows: Sequence[MemoryRow]) -> list[str]:
    """Return names of phases: of those that rewrite the shared variable in rows, their rounds'."""
    rounds = {row.end: row.name if row.round else "load" for row in rows if row.end}
    if rounds and phases[-1][1] not in rounds:
        rounds[phases[-1][1]] = "write"
    return [rounds.get(end, f"phase {n}" if n else "write") for _, end, n in phases]


def _moved(steps: StorySteps, sectors: Sequence[Any], phase: tuple[int, int, int]) -> int:
    """Return the sectors of global memory that a block's accesses move in a phase."""
    events = steps.events[phase[0] : phase[1]].tolist()
    return sum(int(sectors[event]) for event in events if sectors[event] is not None)


def value_range(item: ArrayMap) -> dict[str, Any]:
    """Return the extreme values of an array before and after, and whether all are whole."""
    if item.dtype.kind not in "fiu" or not item.before.size:
        return {"low": 0.0, "high": 0.0, "whole": False}
    both = np.concatenate([item.before.view(item.dtype), item.after.view(item.dtype)])
    finite = both[np.isfinite(both)].astype(np.float64)
    if not len(finite):
        return {"low": 0.0, "high": 0.0, "whole": False}
    whole = bool((finite == np.floor(finite)).all())
    return {"low": float(finite.min()), "high": float(finite.max()), "whole": whole}

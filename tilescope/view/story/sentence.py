"""Title and second sentence of a run, by rules over counters, never over names."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator import Run
from simulator.observe.trace.access_counts import ArrayMap

from .layout import StageLayout
from .rows import SHARED_ROW, MemoryRow

Part = tuple[str, int]
"""Piece of a sentence with its hue; -1 for plain text, -2 for bold."""

_SMALL = 8
_NUMBERS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


@dataclass
class Facts:
    """Counts from which the sentences are built. An inner block stands for all others.

    Attributes:
        names: Names of the global arrays by place.
        hues: Hues of the global arrays by place.
        phases: Phases of the inner block that load; in a product the tiles along k.
        loads: Accesses of global memory by the inner block's loads.
        reads: Accesses of shared memory by its loads.
        values: Distinct elements of the layout's inputs that it loads.
        shares: Elements of an input or output that every recorded block accesses, by place, if all
            access equally many. The last block may access fewer.
        has_smaller_last: Whether it does.
        copied: Whether it reads only copies of the inputs from shared memory.
        made: Elements that it writes.
        last_made: Elements that the last block writes.
        last_block: Coordinates of the last block.
        guarded: Whether constants are stored in place of elements outside an array.
        rows: Rows of the layout ``rows``, of the first recorded block.
        barriers: Barriers that open in that block; 0 if the page has not all of its steps.
    """

    run: Run
    layout: StageLayout
    maps: dict[int, ArrayMap]
    names: dict[int, str]
    hues: dict[int, int]
    phases: int = 1
    loads: int = 0
    reads: int = 0
    values: int = 0
    shares: dict[int, int] = field(default_factory=dict)
    has_smaller_last: bool = False
    copied: bool = True
    made: int = 0
    last_made: int = 0
    last_block: str = ""
    guarded: bool = False
    rows: Sequence[MemoryRow] = field(default_factory=list)
    barriers: int = 0

    @property
    def ragged(self) -> bool:
        """Whether tiles of a product extend past the matrices, where the kernel stores zeros."""
        if self.layout.name != "product" or not self.guarded:
            return False
        m, k = self.maps[self.layout.inputs[0]].shape
        n = self.maps[self.layout.inputs[1]].shape[1]
        wide, high, _ = self.run.block
        # Only where a block's threads are its tile: the grid then covers C by the block's extent.
        covers = self.run.grid[:2] == (-(-n // wide), -(-m // high))
        return covers and bool(m % high or n % wide or k % wide)

    def name(self, place: int) -> Part:
        """Return an array's name with its hue."""
        return self.names[place], self.hues.get(place, 2)

    def listed(self, places: Sequence[int]) -> list[Part]:
        """Return names joined by commas and "and"."""
        found: list[Part] = []
        for i, place in enumerate(places):
            if i:
                found.append((" and " if i == len(places) - 1 else ", ", -1))
            found.append(self.name(place))
        return found


def sentences(facts: Facts) -> tuple[list[Part], list[Part]]:
    """Return the title, and the sentence that supports it."""
    errors = [hazard for hazard in facts.run.hazards if hazard.severity == "error"]
    if errors:
        note = errors[0].notes[0] if errors[0].notes else errors[0].row.help.rstrip(".")
        return quoted(errors[0].title), quoted(note)
    rule = {
        "product": _product,
        "rows": _rows,
        "atomics": _atomics,
        "planes": _planes,
        "strips": _reuse,
    }.get(facts.layout.name)
    found = rule(facts) if rule else None
    if facts.layout.name in ("planes", "plain", "strips"):
        found = _parts(facts) or found
    title, more = found or (_plain(facts), [])
    return title, more or _traffic(facts)


def quoted(text: str) -> list[Part]:
    """Return a report's text as a sentence, with what it has in backticks in bold."""
    parts = f"{text[:1].upper()}{text[1:]}.".split("`")
    return [(part, -2 if i % 2 else -1) for i, part in enumerate(parts) if part]


def times(found: np.ndarray) -> str:
    """Return the range of some counts as text, or the only count."""
    low, high = int(found.min()), int(found.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _often(found: np.ndarray) -> str:
    return "once" if found.min() == found.max() == 1 else f"{times(found)} times"


def plural(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def _word(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def _product(facts: Facts) -> tuple[list[Part], list[Part]] | None:
    a, b = facts.layout.inputs
    (c,) = facts.layout.outputs
    m, k = facts.maps[a].shape
    n = facts.maps[b].shape[1]
    both = facts.listed((a, b))
    counts = np.concatenate([facts.maps[a].reads, facts.maps[b].reads])
    often = _often(counts)
    shared = facts.run.counters.shared_load.accesses > 0
    tiles = facts.phases
    uses = max(n, m) if n == m else 0
    if facts.ragged:
        more = (
            f"Block {facts.last_block} has {plural(facts.last_made, 'output')} for its "
            f"{plural(_threads(facts), 'thread')}. All of them load and meet every barrier."
        )
        return [
            (
                "Tiles reach past the edge of the matrices. There the kernel stores zeros, which "
                "add nothing.",
                -1,
            )
        ], [(more, -1)]
    if shared and tiles > 1 and max(m, n, k) <= _SMALL:
        title = [
            (f"Each block walks {tiles} tiles of ", -1),
            facts.name(a),
            (f" and {tiles} tiles of ", -1),
            facts.name(b),
            (" to make one tile of ", -1),
            facts.name(c),
            (".", -1),
        ]
        more = f"Every value is loaded from global memory {often} instead of {uses or n}"
        share = n // max(1, int(counts.max()))
        more += f": {_word(share)} threads share each load." if share > 1 else "."
        return title, [(more, -1)]
    if counts.max() < n:
        share = n // max(1, int(counts.max()))
        tail = (
            f" is loaded {often}, not {n:,}"
            if uses and counts.max() > 1
            else f" is loaded {often}, not {n:,} times"
            if uses
            else f" is loaded {often}"
        )
        how = f": {share} threads share every load." if shared else ": a block shares every load."
        return [("Each value of ", -1), *both, (f"{tail}{how}", -1)], []
    return [
        ("Each value of ", -1),
        *both,
        (f" is loaded {often} from global memory: once for every product it enters.", -1),
    ], []


def _threads(facts: Facts) -> int:
    return int(np.prod(facts.run.block))


def _traffic(facts: Facts) -> list[Part]:
    """Return the sentence about loads, shared reads and sectors of the launch."""
    counters = facts.run.counters
    loads, reads = counters.global_load, counters.shared_load
    if not loads.accesses:
        return []
    text = plural(loads.accesses, "global load")
    if reads.accesses:
        text += f" feed{'s' * (loads.accesses == 1)} "
        text += f"{plural(reads.accesses, 'read')} from shared memory."
    else:
        text += f" ask{'s' * (loads.accesses == 1)} for {loads.bytes:,} bytes."
    if loads.sectors:
        used = loads.distinct_bytes / (32 * loads.sectors)
        if used > 0.999:
            text += f" All {loads.sectors:,} sectors are used in full."
        else:
            text += f" {plural(loads.sectors, 'sector')} of 32 bytes, {used:.0%} of them used."
    return [(text, -1)]


def _reuse(facts: Facts) -> tuple[list[Part], list[Part]] | None:
    inputs, outputs = facts.layout.inputs, facts.layout.outputs
    if not inputs or not outputs or not facts.made:
        return None
    if facts.reads:
        often = "once" if facts.loads == facts.values else f"in {facts.loads:,} loads"
        return [
            (f"A block loads {plural(facts.values, 'value')} of ", -1),
            *facts.listed(inputs),
            (
                f" {often} and reads them {facts.reads:,} times "
                f"for {plural(facts.made, 'value')} of ",
                -1,
            ),
            *facts.listed(outputs),
            (".", -1),
        ], _borders(facts)
    each = facts.loads / facts.made
    if abs(each - round(each)) < 0.01 and each >= 1:
        return [
            ("Every value of ", -1),
            *facts.listed(outputs),
            (f" is made of {plural(round(each), 'value')} of ", -1),
            *facts.listed(inputs),
            (".", -1),
        ], []
    if not facts.loads:
        return None
    every = plural(facts.made, "value")
    return [
        (f"A block makes {every} of ", -1),
        *facts.listed(outputs),
        (f" from {facts.loads:,} loads of ", -1),
        *facts.listed(inputs),
        (f": {each:.1f} for each value.", -1),
    ], []


def _borders(facts: Facts) -> list[Part]:
    """Return the sentence about elements that several blocks load."""
    reads = facts.maps[facts.layout.inputs[0]].reads
    high, low = int(reads.max()), int(reads.min())
    if high <= max(1, low):
        return []
    more = int((reads > max(1, low)).sum())
    often = "twice" if high == 2 else f"up to {high:,} times"
    return [
        (f"{plural(more, 'element')} of ", -1),
        facts.name(facts.layout.inputs[0]),
        (
            f" {'is' if more == 1 else 'are'} loaded {often}: "
            "the halo that neighbouring blocks share.",
            -1,
        ),
    ]


def _rows(facts: Facts) -> tuple[list[Part], list[Part]] | None:
    rounds = [row for row in facts.rows if row.place == SHARED_ROW][1:]
    if not rounds or not facts.layout.outputs:
        return None
    out = facts.listed(facts.layout.outputs[:1])
    every_out = facts.listed(facts.layout.outputs)
    lines = "Each row is shared memory between two barriers; the lines lead to the picked value."
    operations = {name for row in rounds for name in row.combined} & _OPERATIONS.keys()
    noun, result = _OPERATIONS[operations.pop()] if len(operations) == 1 else ("", "a result")
    made = f" of {noun}s" if noun else ""
    cost, least = _cost(facts, rounds, noun or "operation")
    more: list[Part] = [(f"{cost}{lines}", -1)]
    summed: list[Part] = [(f"{least}{lines}", -1)]
    far = [row.reach for row in rounds]
    wide = [len(set(row.written)) for row in rounds]
    doubling = all(b == 2 * a for a, b in itertools.pairwise(far)) and far[0] == 1
    halving = len(wide) > 1 and all(b <= (a + 1) // 2 + 1 for a, b in itertools.pairwise(wide))
    n = len(rounds)
    edges = [edge for row in rounds for edge in row.edges]
    if doubling and all(source <= to for to, source in edges) and reaches_all_before(facts.rows):
        inside = " in its block" if math.prod(facts.run.grid) > 1 else ""
        return [
            (f"{n} rounds{made}, each twice as far, make every element of ", -1),
            *out,
            (f" {result} of all up to it{inside}.", -1),
        ], summed
    if doubling and {(source, to) for to, source in edges} == set(edges):
        return [
            (f"{n} rounds, each pairing elements twice as far apart, make every element of ", -1),
            *out,
            (f" from all {len(rounds[0].values)} in shared memory.", -1),
        ], more
    if halving:
        return [
            (f"{n} rounds, each with half as many threads, make one value of ", -1),
            *out,
            (f" out of {len(set(facts.rows[1].written) or {0})} in shared memory.", -1),
        ], summed
    if not facts.layout.inputs:
        return [
            (f"{plural(n, 'round')} between barriers change {plural(facts.made, 'value')} of ", -1),
            *every_out,
            (" in place.", -1),
        ], more  # fmt: skip
    return [
        (f"{plural(n, 'round')} between barriers turn {plural(facts.values, 'value')} of ", -1),
        *facts.listed(facts.layout.inputs),
        (f" into {plural(facts.made, 'value')} of ", -1),
        *every_out,
        (".", -1),
    ], more


_OPERATIONS = {
    "sum": ("addition", "a sum"), "product": ("multiplication", "a product"),
    "maximum": ("comparison", "the maximum"), "minimum": ("comparison", "the minimum"),
}  # fmt: skip
"""Operations that combine two elements, with their results."""


def _cost(facts: Facts, rounds: Sequence[MemoryRow], noun: str) -> tuple[str, str]:
    """Return sentences on the work of the rounds: operations, idle threads and barriers.

    The second text compares the operations with the fewest that combine all elements. Without the
    whole block both are empty.
    """
    if not facts.barriers:
        return "", ""
    threads = int(np.prod(facts.run.block))
    total = sum(len(row.combined.get(name, ())) for row in rounds for name in _OPERATIONS)
    loaded = next(row for row in facts.rows if row.place == SHARED_ROW)
    values = len(set(loaded.written))
    work = f"{plural(total, noun)} on {plural(values, 'value')}" if total else ""
    is_more = total >= values and noun != "operation"
    least = f"{work}, where {values - 1:,} suffice" if is_more else work
    idle = 1 - sum(len(row.threads) for row in rounds) / (threads * len(rounds))
    rest = []
    if idle >= 0.005:
        rest.append(f"{idle:.0%} of the threads write nothing in a round, on average")
    rest.append(f"{plural(facts.barriers, 'barrier')} a block")
    first, second = ("; ".join(filter(None, (one, *rest))) for one in (work, least))
    return f"{first}. ", f"{second}. "


def reaches_all_before(rows: Sequence[MemoryRow]) -> bool:
    """Return whether the last row's rightmost value depends on every element of the first."""
    inner = [row for row in rows if row.place == SHARED_ROW]
    if not inner:
        return False
    width = len(inner[0].values)
    behind = {width - 1}
    for row in reversed(inner[1:]):
        above: dict[int, set[int]] = {}
        for to, source in row.edges:
            above.setdefault(to, set()).add(source)
        behind = {source for at in behind for source in above.get(at, {at})}
    return len(behind) == width


def _atomics(facts: Facts) -> tuple[list[Part], list[Part]] | None:
    outputs = [n for n in facts.layout.outputs if facts.maps[n].reads.any()]
    if not outputs:
        return None
    item = facts.maps[outputs[0]]
    total, busiest = int(item.writes.sum()), int(item.writes.max())
    hit = int((item.writes > 0).sum())
    others = [n for n in facts.layout.outputs if not facts.maps[n].reads.any()]
    if others:
        operations = f"{plural(total, 'atomic operation')} on {plural(hit, 'element')} of "
        title = [*_plain(facts, others)[:-1], (f", by {operations}", -1)]
        return [*title, facts.name(outputs[0]), (".", -1)], []
    title = [(f"{plural(total, 'atomic operation')} on {plural(hit, 'element')} of ", -1)]
    title += [facts.name(outputs[0])]
    inputs = facts.layout.inputs[:1]
    if inputs:
        count = int(facts.maps[inputs[0]].reads.size)
        title += [(f" gather {plural(count, 'value')} of ", -1), facts.name(inputs[0])]
    title += [(".", -1)]
    shared = facts.run.counters.shared_atomic.accesses
    more = f"The busiest element takes {busiest:,} of them."
    if shared:
        more += f" {shared:,} more stay in shared memory, where they cost less."
    return title, [(more, -1)]


def _parts(facts: Facts) -> tuple[list[Part], list[Part]] | None:
    """Return the sentence about inputs that each block reads in part, and others in full."""
    blocks = int(np.prod(facts.run.grid))
    whole = [n for n in facts.layout.inputs if facts.shares.get(n, 0) == facts.maps[n].reads.size]
    some = [n for n in facts.layout.inputs if n not in whole and n in facts.shares]
    if blocks < 2 or not some or not facts.layout.outputs or (facts.copied and not whole):
        return None
    first = facts.layout.outputs[0]
    made = int((facts.maps[first].writes > 0).sum())
    share = facts.shares.get(first, 0)
    covers = share * (blocks - 1) < made <= share * blocks
    if len(whole) + len(some) < len(facts.layout.inputs) or not covers:
        return None
    rows = len(facts.maps[first].shape) > 1

    upto = "up to " if facts.has_smaller_last else ""

    def part(place: int) -> list[Part]:
        item = facts.maps[place]
        columns = item.shape[-1] if rows else 1
        count, rest = divmod(facts.shares[place], columns)
        unit = "element" if item.is_typed else "byte"
        noun = unit if rest or not rows else "row"
        count = facts.shares[place] if noun == unit else count
        return [(f"{upto}{plural(count, noun)} of ", -1), facts.name(place)]

    title: list[Part] = [(f"Each of {blocks:,} blocks makes ", -1), *part(first), (" from ", -1)]
    for i, place in enumerate(some):
        title += [(", " if i else "", -1), *part(place)]
    if not whole:
        counts = np.concatenate([facts.maps[n].reads for n in some])
        often = f" is loaded {_often(counts)}." if counts.max() > 0 else ""
        return [*title, (".", -1)], [("Each value of ", -1), *facts.listed(some), (often, -1)]
    title += [(" and all of ", -1), *facts.listed(whole), (".", -1)]
    counts = np.concatenate([facts.maps[n].reads for n in whole])
    more: list[Part] = [
        ("Each value of ", -1), *facts.listed(whole),
        (f" is loaded {_often(counts)}: once by every block.", -1),
    ]  # fmt: skip
    return title, more if counts.min() == counts.max() == blocks else []


def _planes(facts: Facts) -> tuple[list[Part], list[Part]] | None:
    inputs, outputs = facts.layout.inputs, facts.layout.outputs
    if len(inputs) == 1 and len(outputs) == 1:
        i, o = facts.maps[inputs[0]], facts.maps[outputs[0]]
        if len(i.shape) == 2 and o.shape == i.shape[::-1] and i.dtype == o.dtype:
            before = i.before.view(i.dtype).reshape(i.shape)
            if np.array_equal(o.after.view(o.dtype).reshape(o.shape), before.T):
                how = "through shared memory" if facts.reads else "straight from register to memory"
                return [
                    ("Every value of ", -1),
                    facts.name(inputs[0]),
                    (" goes to its mirrored place in ", -1),
                    facts.name(outputs[0]),
                    (f", {how}.", -1),
                ], []
    return _reuse(facts)


def _plain(facts: Facts, outputs: Sequence[int] | None = None) -> list[Part]:
    """Return the sentence of what is read, changed in place, and written."""
    run = facts.run
    blocks = int(np.prod(run.grid))
    title: list[Part] = [
        (f"{plural(blocks * _threads(facts), 'thread')} in {plural(blocks, 'block')}", -1)
    ]
    outputs = facts.layout.outputs if outputs is None else outputs
    changed = [n for n in outputs if facts.maps[n].reads.any()]
    written = [n for n in outputs if n not in changed]
    parts = [("read", facts.layout.inputs), ("change", changed), ("write", written)]
    said = [(verb, facts.listed(places[:4])) for verb, places in parts if places]
    for i, (verb, names) in enumerate(said):
        joint = " " if not i else " and " if i == len(said) - 1 else ", "
        title += [(f"{joint}{verb} ", -1), *names]
    return [*title, (".", -1)]

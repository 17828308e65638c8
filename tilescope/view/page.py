"""Rendering of recorded runs as one self-contained HTML file, shown inline in notebooks."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from simulator import Prediction, Run, SimulatorError
from simulator.hazards.hazard import Triple
from simulator.observe.trace.trace import Batch, Trace

from ..gpu.prediction_inputs import forecast_of
from ..release import version
from ..text.findings import count, severities
from ..text.report import clean
from . import describe, limits
from .bundle import bundle, styles
from .events import FIELDS, pack_batch
from .pool import Pool
from .story.comparison import compare
from .story.moments import wrong_outputs
from .story.story import ShownSteps, Teller

BUDGET = 1_650_000
"""Characters of a page's packed numbers. With script and styles a page stays below 2 MB."""
_PACKED = 0.7
"""Bytes of the pool for one character: base64 turns 3 bytes into 4, after deflation."""
_STORY = 40_000
"""Characters of the runs' stories that the budget does not count."""
_VALUES = 1 << 19
"""Total bytes of global arrays up to which the page contains their values."""


class NoTrace(SimulatorError):
    """A run without a trace was passed to the page."""


@dataclass(eq=False)
class Story:
    """A run with its title, comparison and prediction, as the page shows it.

    Attributes:
        name: Title of the run; the kernel's name by default.
        note: Size or variant of the launch.
        outputs: Comparison of each output with the reference (``Agreement.to_dict``).
        prediction: Predicted time of the launch on a GPU.
        blocks: Linear numbers of recorded blocks that the page keeps before all others.
        command: Command line of the run. The page offers it with ``--block-at`` for other blocks.
        tiles: Predictions with other tile sizes, as ``tile_row`` returns them.
        fixed: Run of the verified fix, recorded for the same block.
    """

    run: Run
    name: str = ""
    note: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    prediction: Prediction | None = None
    blocks: Sequence[int] = ()
    command: str = ""
    fixed: Run | None = None
    tiles: list[dict[str, Any]] = field(default_factory=list)


def page(stories: Sequence[Story], budget: int = BUDGET) -> str:
    """Return the HTML of a page that shows one run, or several side by side.

    Raises:
        NoTrace: A run was launched without ``trace=True``.
    """
    content = parts(stories, budget)
    return rendered(content["title"], content["data"], content["numbers"])[2]


def parts(stories: Sequence[Story], budget: int) -> dict[str, str]:
    """Return the title, the JSON data and the packed numbers of a page."""
    content = _content(stories, budget)
    packed = content.pop("pool")
    return {
        "title": " / ".join(run["name"] for run in content["runs"] if not run.get("hidden")),
        "data": to_json({**content, "pool": {k: v for k, v in packed.items() if k != "bytes"}}),
        "numbers": packed["bytes"],
    }


def rendered(title: str, data: str, numbers: str) -> tuple[str, str, str]:
    """Return the script, the style sheet and the HTML of a page."""
    script, style = bundle("main"), styles()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tilescope.view", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    text = environment.get_template("page.html").render(
        title=title, policy=policy((script,), (style,)), script=script, style=style, data=data,
        numbers=numbers,
    )  # fmt: skip
    return script, style, text


def policy(scripts: Sequence[str], sheets: Sequence[str]) -> str:
    """Return a content security policy: no network, and only these scripts and style sheets."""
    kinds = [
        " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for text in texts
        )
        for texts in (scripts, sheets)
    ]
    return (
        f"default-src 'none'; script-src {kinds[0]}; "
        f"style-src {kinds[1]}; base-uri 'none'; form-action 'none'"
    )


def to_json(content: Any) -> str:
    """Return JSON in which ``<``, ``>`` and ``&`` are escaped, so that it cannot end a script."""
    text = json.dumps(describe.plain(content), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _content(stories: Sequence[Story], budget: int) -> dict[str, Any]:
    """Return the page's data with as many recorded blocks as fit into ``budget`` characters."""
    for story in stories:
        if story.run.trace is None:
            raise NoTrace(
                "this run was not recorded: launch it with simulator.launch(..., trace=True)"
            )
    max_blocks = max(len(_recorded(story.run.trace)) for story in stories)
    shown = len(stories)
    stories = [*stories, *(_with_fix(story) for story in stories if story.fixed is not None)]
    tellers: dict[int, Teller] = {}
    while True:
        pool = Pool()
        runs = [_described(story, pool) for story in stories]
        room = 16 * budget
        if max_blocks <= 1:  # the only block: as many of its steps as fit
            room = int(_PACKED * max(0, budget - len(pool.packed()["bytes"])))
        for i, (story, run) in enumerate(zip(stories, runs, strict=True)):
            start = pool.nbytes
            limit = start + room // (len(runs) - i)
            kinds = [
                (v["start"], v["start"] + v["bytes"], v["kind"]) for v in run["shared"] if v["kind"]
            ]
            # Addresses and predicates are followed by the page, but are no steps of a block.
            quiet = {n for n, w in enumerate(run["watched"]) if {"address", "predicate"} & w.keys()}
            run["batches"] = _batches(story, max_blocks, pool, limit, kinds, quiet)
            if i not in tellers:
                assert story.run.trace is not None
                tellers[i] = Teller(
                    story.run, run["watched"], run["arrays"], run["shared"], run["sources"]
                )
            packed_batches = zip(_kept_batches(story, max_blocks), run["batches"], strict=True)
            shown_steps = [
                ShownSteps(batch, b["blocks"], b.pop("taken"), b.pop("sectors"))
                for batch, b in packed_batches
            ]
            run["story"] = tellers[i].tell(shown_steps, pool)
            room -= pool.nbytes - start
        _link_fixes(stories[:shown], runs)
        packed = pool.packed()
        spoken = len(to_json([run["story"] for run in runs]))
        size = len(packed["bytes"]) + max(0, spoken - _STORY)
        if max_blocks <= 1 or size <= budget:
            break
        share = budget / size
        max_blocks = max(1, min(max_blocks - 1, int(max_blocks * share)))
    compared = compare(
        [story.run for story in stories[:shown]],
        [run["name"] for run in runs],
        [story.prediction for story in stories[:shown]],
    )
    return {
        "version": version(), "fields": FIELDS, "runs": runs, "compare": compared, "pool": packed,
    }  # fmt: skip


def _with_fix(story: Story) -> Story:
    assert story.fixed is not None
    return Story(story.fixed, f"{story.name}, fixed", story.note)


def _link_fixes(stories: Sequence[Story], runs: list[dict[str, Any]]) -> None:
    """Set ``fixed``, the number of a run's fixed run, and ``wrong``, how many results differ."""
    place = len(stories)
    for story, run in zip(stories, runs, strict=False):
        run["fixed"] = -1
        if story.fixed is not None:
            run["fixed"], run["wrong"] = place, list(wrong_outputs(story.run, story.fixed))
            place += 1
    for run in runs[len(stories) :]:
        run["fixed"], run["hidden"] = -1, True


def _recorded(trace: Trace | None) -> list[int]:
    assert trace is not None
    return [block for batch in trace.batches for block in batch.blocks]


def _chosen(story: Story, max_blocks: int) -> list[int]:
    """Return the blocks to keep: those asked for, those of hazards, first, last, some between."""
    run = story.run
    recorded = _recorded(run.trace)
    named = hazard_blocks(run)
    first = [n for n in dict.fromkeys(named) if n in recorded][: max(1, max_blocks // 2)]
    outer = [recorded[0], recorded[-1]] if recorded else []
    spread = np.linspace(0, len(recorded) - 1, min(max_blocks, len(recorded))).round()
    asked = [block for block in story.blocks if block in recorded]
    wanted = dict.fromkeys([*asked, *first, *outer, *(recorded[int(i)] for i in spread), *recorded])
    return sorted(list(wanted)[:max_blocks])


def hazard_blocks(run: Run) -> list[int]:
    """Return the linear numbers of the blocks that hazards name, each once."""
    involved = [item.block for hazard in run.hazards for item in hazard.involved]
    return list(dict.fromkeys(_number(run, block) for block in involved if block is not None))


def _number(run: Run, block: Triple) -> int:
    return block[0] + run.grid[0] * (block[1] + run.grid[1] * block[2])


def _batches(
    story: Story, max_blocks: int, pool: Pool, limit: int, kinds: list[tuple[int, int, str]],
    quiet: set[int],
) -> list[Any]:  # fmt: skip
    """Pack the recorded steps of at most ``max_blocks`` blocks."""
    trace = story.run.trace
    assert trace is not None
    chosen = set(_chosen(story, max_blocks))
    found = []
    for batch in _kept_batches(story, max_blocks):
        blocks = [block for block in batch.blocks if block in chosen]
        found.append(pack_batch(trace, batch, blocks, pool, limit, kinds, quiet))
    return found


def _kept_batches(story: Story, max_blocks: int) -> list[Batch]:
    """Return the batches that have a block on the page."""
    assert story.run.trace is not None
    chosen = set(_chosen(story, max_blocks))
    return [batch for batch in story.run.trace.batches if chosen & set(batch.blocks)]


def _described(story: Story, pool: Pool) -> dict[str, Any]:
    """Return the data of a run except its steps."""
    run = story.run
    trace = run.trace
    assert trace is not None
    text = describe.Text(trace)
    watched = [text.watched(item, pool) for item in trace.program.watched or []]
    total = sum(m.reads.size * m.size for m in trace.maps.values() if m.argument)
    plain = run.to_dict()
    return {
        "name": story.name or run.kernel,
        "note": story.note,
        "outputs": story.outputs,
        "command": story.command,
        "prediction": limits.prediction(run, story.prediction),
        "kernel": run.kernel, "build": run.build, "schedule": run.schedule,
        "grid": run.grid, "block": run.block, "shared_bytes": run.shared_bytes,
        "counters": plain["counters"], "lines": describe.lines(run),
        "checks": plain["checks"], "clean": clean(run),
        "hazards": describe.hazards(run),
        "found": severities(run.hazards) or count(len(run.hazards), "note"),
        "blocks": trace.blocks,
        "recursive": any(block.group for block in trace.program.blocks),
        "clusters": any(site.far for site in trace.program.sites),
        "watched": watched,
        "sources": text.sources(),
        "ptx": text.ptx,
        "arrays": describe.arrays(trace, pool, total <= _VALUES),
        "shared": describe.shared(trace, run.shared_bytes),
        "limits": limits.limits(run),
        "levels": limits.levels(run, story.prediction),
        "tiles": story.tiles,
    }  # fmt: skip


_HEIGHT = 640
"""Pixels of the frame in a notebook."""


class Shown:
    """Page of a run. Notebooks display it; ``save`` writes it to a file."""

    def __init__(self, content: str) -> None:
        self.content = content

    def save(self, file: str | Path) -> Path:
        """Write the page to ``file`` and return its path."""
        path = Path(file)
        path.write_text(self.content, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """Return the page, smaller, in an ``iframe`` as Jupyter displays it."""
        text = html.escape(self.content.replace("<html ", '<html data-small="" ', 1))
        return (
            f'<iframe srcdoc="{text}" title="tilescope" '
            f'style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {len(self.content):,} characters; .save(file) writes it>"


def show(*runs: Run) -> Shown:
    """Return the page of one run, or of several side by side, with predictions of their times.

    Raises:
        NoTrace: A run was launched without ``trace=True``.
    """
    return Shown(page([Story(run, prediction=forecast_of(run).prediction) for run in runs]))

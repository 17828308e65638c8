"""``python -m tests.fuzz SECONDS SEED``: run the nets for as long as wanted.

Each net runs for SECONDS. A difference is printed with its seed and its shrunk program; the
seed shows it again with ``--net NAME --count 1``. The exit code is 1 if there was one.
"""

import argparse
import importlib
import importlib.util
import os
import sys
import time
from typing import Any

from simulator.compile.compiler import CHECKED
from simulator.execute.progress import lane_compaction
from tests.fuzz import tree
from tests.fuzz.report import Report

NETS = ("ptx", "cuda", "unset", "mutate", "modifiers", "races", "claims", "promises", "convergence",
        "engines")  # fmt: skip


def available() -> list[str]:
    """The nets that are there."""
    return [name for name in NETS if importlib.util.find_spec(f"{__package__}.{name}")]


def told(name: str, report: Report, seconds: float) -> str:
    """A net's report as text."""
    lines = [
        f"{name}: {report.programs} programs, {report.launches} launches, "
        f"{len(report.differences)} differences in {seconds:.0f} s"
    ]
    for kind in sorted({*report.reached, *report.known}):
        counts = report.reached.get(kind, {})
        lines.append(f"  {kind}: {len(counts)} reached")
        pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        lines.append("    " + ", ".join(f"{key} {n}" for key, n in pairs))
        never = report.never(kind)
        if never:
            lines.append(f"  {kind} never reached: {', '.join(never)}")
    lines += [f"  {note}" for note in report.notes]
    for found in report.differences:
        lines.append(f"  DIFFERENCE, seed {found.seed}: {found.what}")
        lines += [f"    | {line}" for line in found.program.splitlines()]
    return "\n".join(lines)


def until_first(net: Any, seconds: float, seed: int) -> Report:
    """A net's run up to its first difference, which stays as it was drawn."""
    tree.SHRINKS = False
    end = time.monotonic() + seconds
    whole = Report()
    while not whole.differences and (left := end - time.monotonic()) > 0:
        part: Report = net.run(left, seed + whole.programs, 4)
        whole.programs += part.programs
        whole.launches += part.launches
        whole.differences += part.differences
    return whole


def main(words: list[str]) -> int:
    """Run the command; 1 on a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seconds", type=float, help="for each net")
    parser.add_argument("seed", type=int, help="of the first program")
    parser.add_argument("--net", action="append", choices=NETS, help="only this one (repeatable)")
    parser.add_argument("--count", type=int, help="at most so many programs a net")
    parser.add_argument("--first", action="store_true", help="stop at a difference, unshrunk")
    options = parser.parse_args(words)
    os.environ[CHECKED] = "1"
    lane_compaction.LEAST = lane_compaction.SHORT = (
        0  # lanes of small batches, too, are picked out in lockstep
    )
    lane_compaction.SHARE = 1
    names = options.net or available()
    failed = False
    for name in names:
        print(f"{name}: {options.seconds:g} s from seed {options.seed} ...", flush=True)
        start = time.monotonic()
        net = importlib.import_module(f"{__package__}.{name}")
        if options.first:
            report = until_first(net, options.seconds, options.seed)
        else:
            report = net.run(options.seconds, options.seed, options.count)
        print(told(name, report, time.monotonic() - start), flush=True)
        failed = failed or bool(report.differences)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m benchmarks.sanitizer``: compute-sanitizer on the faulty kernels, beside us.

Each faulty kernel of the library is launched once on the GPU under each tool, in a process
of its own, because an illegal address or a deadlock spoils the process; and once without a
tool. The simulator judges the same launch without a GPU, both builds as ``tilescope check``
does. Prints a Markdown table, and names what either of the two misses.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import device
from benchmarks.machine import command_line, provenance, table
from device.driver import STICKY
from kernels import library
from tilescope.check.checker import Checker
from tilescope.check.launcher import Launcher
from tilescope.cli.request import Request
from tilescope.cli.target import resolve
from tilescope.text.findings import count

TOOLS = ("racecheck", "memcheck", "synccheck")
ALONE = "GPU alone"
_ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error")
_RACES = re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warning")
_FAULTS = re.compile(r"CUDA_ERROR_\w+")
_RETURNED = re.compile(r"^========= Program hit (\w+)", re.M)
_GRACE = 5.0
"""Seconds that a run which is told to end has for it."""


@dataclass(frozen=True)
class Result:
    """What one run on the GPU came to.

    Attributes:
        found: Whether the tool reported anything.
        text: For the table.
    """

    found: bool
    text: str


def faulty() -> list[str]:
    """Names of the library's faulty kernels."""
    return [name for name in library.names() if library.get(name).twin]


def twins() -> list[str]:
    """Names of the correct kernels that stand beside them."""
    return list(dict.fromkeys(library.get(name).twin for name in faulty()))


def size_of(name: str) -> list[str]:
    """Small, for a matrix product; otherwise as it comes. The wrong guard needs an edge."""
    if name.startswith("matmul"):
        return ["--size", "40x33x50" if "guard" in name else "64"]
    return []


def ours(name: str) -> Result:
    """The simulator's verdict: kinds and severities, and in which builds."""
    size = size_of(name)
    target = resolve(Request(name, size=size[1] if size else None))
    verdict = Checker(Launcher(target, quiet=True)).check(("device", "source"), fixes=False)
    kinds: dict[str, set[str]] = {}
    for hazard in verdict.hazards:
        mild = " (warning)" if hazard.severity == "warning" else ""
        kinds.setdefault(hazard.kind + mild, set()).update(hazard.builds)
    texts = []
    for kind, builds in kinds.items():
        only = "" if len(builds) == 2 else f" [{next(iter(builds))} build]"
        texts.append(kind + only)
    return Result(bool(texts), ", ".join(texts) or "-")


def read(tool: str, output: str, code: int | None) -> Result:
    """What a tool's output says.

    ``code`` is its exit code; ``None`` if it was stopped, because it did not end.
    """
    hung = " (hangs)" if code is None else ""
    fault = _FAULTS.search(output)
    if tool == ALONE:
        if hung:
            return Result(True, "hangs")
        return Result(
            bool(fault), _short(fault[0]) if fault else "ends" if code == 0 else f"exit code {code}"
        )
    if found := _RACES.search(output):
        hazards, errors, warnings = (int(number) for number in found.groups())
        text = f"{count(errors, 'error')}, {count(warnings, 'warning')}" if hazards else "-"
        return Result(hazards > 0, text + hung)
    if found := _ERRORS.search(output):
        # What a driver call returned is counted too; only a kernel that failed is meant here.
        returned = _RETURNED.findall(output)
        failed = [code for code in returned if code in STICKY]
        reports = int(found[1]) - len(returned)
        first = _first(output)
        if reports > 0:
            return Result(True, f"{reports}: {first or 'unnamed'}{hung}")
        return Result(bool(failed), (_short(failed[0]) if failed else "-") + hung)
    if hung:
        first = _first(output)
        return Result(bool(first), f"{first} (hangs)" if first else "hangs, no report")
    return Result(False, f"no summary (exit code {code})")


def _short(code: str) -> str:
    """``CUDA_ERROR_ILLEGAL_ADDRESS`` as ``illegal address``."""
    return code.removeprefix("CUDA_ERROR_").lower().replace("_", " ")


def _first(output: str) -> str:
    """The first thing that a tool reports, in its own words."""
    for line in output.splitlines():
        text = line.removeprefix("=========").strip()
        if line.startswith("=========") and re.match(
            r"(Invalid|Misaligned|Barrier error|Error: |Warning: |Uninitialized|Address |Stack)",
            text,
        ):
            return re.sub(r"\s+at .*0x.*", "", text)[:60].rstrip(" .")
    return ""


def on_gpu(name: str, tool: str, build: str, limit: float) -> tuple[str, int | None]:
    """One launch in a process of its own: its output, and its exit code if it ended."""
    under = [] if tool == ALONE else ["compute-sanitizer", "--tool", tool, "--print-limit", "20"]
    command = [
        *under, sys.executable, "-m", "tilescope", "_launch", name, "--build", build,
        *size_of(name),
    ]  # fmt: skip
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    try:
        return child.communicate(timeout=limit)[0], child.returncode
    except subprocess.TimeoutExpired:
        for stop in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(child.pid, stop)
                return child.communicate(timeout=_GRACE)[0], None
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                break
        return "", None


def measured(
    names: Sequence[str], columns: Sequence[str], options: argparse.Namespace
) -> Iterator[tuple[str, list[Result]]]:
    """Every kernel with its results, in order; what does not fit the time says so."""
    end = time.monotonic() + options.deadline

    def one(job: tuple[str, str]) -> Result:
        name, tool = job
        if time.monotonic() > end:
            return Result(False, "not run (out of time)")
        output, code = on_gpu(name, tool, options.build, options.limit)
        if options.out:
            file = Path(options.out) / f"{name}.{tool.replace(' ', '-')}.log"
            file.write_text(f"exit code {code}\n{output}", encoding="utf-8")
        return read(tool, output, code)

    jobs = [(name, tool) for name in names for tool in columns]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(one, jobs))
    for place, name in enumerate(names):
        yield name, results[place * len(columns) : (place + 1) * len(columns)]


def report(names: Sequence[str], options: argparse.Namespace) -> list[str]:
    """The table, and who misses what."""
    tools = options.tools.split(",")
    columns = [ALONE, *tools]
    verdicts = {name: ours(name) for name in names}  # compiles both builds, so children need not
    lines, missed, missed_by_tools, unjudged = [], [], [], []
    for name, results in measured(names, columns, options):
        reported = any(result.found for result in results[1:])
        if any("not run" in result.text or "no summary" in result.text for result in results):
            unjudged.append(name)
        if not verdicts[name].found:
            missed.append(name)
        if not reported and name not in unjudged:
            missed_by_tools.append(name)
        lines.append([name, verdicts[name].text, *(result.text for result in results)])
    head = ["kernel", "tilescope (no GPU)", ALONE, *tools]
    text = table(head, lines, right=len(head))
    text += ["", f"Nothing reported by tilescope ({len(missed)} of {len(names)}): "
             f"{', '.join(missed) or 'none'}."]  # fmt: skip
    text += ["", f"Nothing reported by {', '.join(tools)} ({len(missed_by_tools)} of "
             f"{len(names)}): {', '.join(missed_by_tools) or 'none'}."]  # fmt: skip
    if unjudged:
        text += ["", f"Not judged, a run is missing: {', '.join(unjudged)}."]
    return text


def main() -> int:
    """Run, and print the tables."""
    parser = command_line("sanitizer", __doc__)
    parser.add_argument("--tools", default=",".join(TOOLS), help="of compute-sanitizer")
    parser.add_argument("--kernels", default="", help="comma-separated; all the faulty ones")
    parser.add_argument("--twins", action="store_true", help="also the correct twins")
    parser.add_argument("--build", default="device", choices=("device", "source"))
    parser.add_argument("--jobs", type=int, default=4, help="processes at a time")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds until a run hangs")
    parser.add_argument("--deadline", type=float, default=450.0, help="seconds for all runs")
    parser.add_argument("--out", default="", help="folder for the output of every run")
    options = parser.parse_args()
    there, why = device.available()
    if not there:
        print(f"error: benchmarks.sanitizer needs a GPU: {why}", file=sys.stderr)
        return 2
    if shutil.which("compute-sanitizer") is None:
        print("error: compute-sanitizer is not on the PATH (CUDA toolkit)", file=sys.stderr)
        return 2
    if options.out:
        Path(options.out).mkdir(parents=True, exist_ok=True)
    version = subprocess.run(
        ["compute-sanitizer", "--version"], capture_output=True, text=True, check=False
    ).stdout
    found = re.search(r"\d{4}\.\d\S*", version)
    print("\n\n".join(provenance()) + f"\n\ncompute-sanitizer {found[0] if found else ''}; "
          f"{options.build} build on the GPU\n", flush=True)  # fmt: skip
    names = [name for name in options.kernels.split(",") if name] or faulty()
    print("\n".join(report(names, options)))
    if options.twins:
        print("\nThe correct twins:\n")
        print("\n".join(report(twins(), options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

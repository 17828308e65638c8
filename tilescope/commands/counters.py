"""``tilescope counters``: the simulator's counters against Nsight Compute's."""

import dataclasses
from typing import Any

import click

import device
from simulator import Run

from ..check.outcome import execute
from ..cli.output import say_report, write_json
from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.hardware import require_gpu
from ..gpu.ncu import Figure, Readings, figures, find_ncu, measure
from ..text.hardware import hardware
from ..text.layout import fitted


def counters_command(
    ctx: click.Context, request: Request, index: int, json_file: str | None
) -> None:
    """Run ``tilescope counters``; ``tilescope.usage`` has its options."""
    find_ncu()
    require_gpu(index, "counters")
    run = execute(resolve(request, False), "lockstep", "none").run
    words = [*command_words(request), "--device", str(index)]
    level0, default = measure(words, 0), measure(words, None)
    found = figures(run.counters, level0, default)
    if json_file is not None:
        write_json(json_file, _content(run, found, level0, default))
    if json_file != "-":
        say_report(fitted(hardware(run, found, level0, default, device.device_name(index))))
    ctx.exit(int(any(figure.verdict == "NOT" for figure in found)))


def command_words(request: Request) -> list[str]:
    """Return the command line that repeats a request."""
    words = [request.target, *request.words]
    for name in ("size", "tile", "grid", "block", "build", "arch"):
        value = getattr(request, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    words += ["--shared", str(request.shared), "--seed", str(request.seed)]
    for option in request.options:
        words += ["--option", option]
    return words


def _content(run: Run, found: list[Figure], level0: Readings, default: Readings) -> dict[str, Any]:
    return {
        "schema": 1,
        "kernel": run.kernel,
        "sha256": run.sha256,
        "equal": all(figure.equal for figure in found),
        "counters": [dataclasses.asdict(figure) | {"verdict": figure.verdict} for figure in found],
        "ncu": {"level0": level0, "default": default},
    }

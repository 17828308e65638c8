"""Findings as SARIF 2.1.0, the format that code-review tools read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
import os
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from simulator import Hazard, Involved
from simulator.hazards.hazard import SEVERITIES

from .checker import Verdict
from .text.layout import display_path

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RACE = (
    "Two threads touch the same bytes, at least one writes, and nothing orders them. Put a "
    "__syncthreads() between the two lines, or give each thread bytes of its own, or use atomics."
)
RULES: dict[str, tuple[str, str]] = {
    "raw-race": ("A read races with a write before it", _RACE),
    "war-race": ("A write races with a read before it", _RACE),
    "waw-race": ("Two writes race", _RACE),
    "barrier-divergence": (
        "Threads of a block do not wait at the same barrier",
        "Every thread of the block has to come to the same __syncthreads(). Move it out of code "
        "that only some threads enter.",
    ),
    "deadlock": (
        "Threads wait for something that never happens",
        "Some threads wait at a barrier that others never reach, or the launch was given up after "
        "its steps.",
    ),
    "livelock": (
        "Threads loop without end",
        "No fair schedule makes progress: they loop on a value that nobody changes.",
    ),
    "out-of-bounds": (
        "An access outside the array",
        "Guard the access with the array's length, or round the launch differently.",
    ),
    "misaligned": (
        "A misaligned access",
        "An access of 2, 4, 8 or 16 bytes needs an address that is a multiple of its size.",
    ),
    "read-only": (
        "A write to read-only memory",
        "The array was passed as read-only, or lies in constant memory.",
    ),
    "address-space": (
        "An access through the wrong address space",
        "A pointer of one address space was used in an instruction for another.",
    ),
    "uninitialised": (
        "A read of memory that nothing wrote",
        "Shared and local memory hold no zeros at the start. Write the element before it is read.",
    ),
    "bad-mask": (
        "A warp instruction waits for lanes that never come",
        "The member mask of a shuffle, vote or __syncwarp names lanes that do not execute it.",
    ),
    "assert": ("An assertion failed", "An assert() of the kernel was false for some thread."),
    "trap": ("The kernel executed a trap", "The kernel stopped itself."),
    "unset-constant": (
        "A constant that nothing has filled",
        "The __constant__ variable has no initial value in the source, and the host's copy into "
        "it is not part of the launch: it reads as zeros here.",
    ),
}
"""A sentence and help for each kind of hazard."""


def sarif(verdict: Verdict) -> dict[str, Any]:
    """The whole log: one run, one result a hazard."""
    kinds = list(RULES)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tilescope",
                        "version": _version(),
                        "rules": [_rule(kind) for kind in kinds],
                    }
                },
                "invocations": [_invocation(verdict)],
                "columnKind": "utf16CodeUnits",
                "results": [_result(verdict, hazard, kinds) for hazard in verdict.hazards],
                "properties": {
                    "target": verdict.target.name,
                    "grid": list(verdict.runs[0].grid),
                    "block": list(verdict.runs[0].block),
                    "builds": list(verdict.builds),
                    "checks": list(verdict.checked),
                },
            }
        ],
    }


def _invocation(verdict: Verdict) -> dict[str, Any]:
    notices = [
        {"level": "warning", "message": {"text": f"{build} build: {reason}"}}
        for build, reason in verdict.refused.items()
    ]
    told = {"toolExecutionNotifications": notices} if notices else {}
    return {"executionSuccessful": True} | told


def _version() -> str:
    try:
        return metadata.version("tilescope")
    except metadata.PackageNotFoundError:
        return "0"


def _rule(kind: str) -> dict[str, Any]:
    sentence, text = RULES[kind]
    return {
        "id": kind,
        "name": "".join(part.capitalize() for part in kind.split("-")),
        "shortDescription": {"text": sentence + "."},
        "fullDescription": {"text": f"{sentence}. {text}"},
        "help": {"text": text},
        "defaultConfiguration": {"level": SEVERITIES[kind]},
    }


def _result(verdict: Verdict, hazard: Hazard, kinds: list[str]) -> dict[str, Any]:
    text = f"{hazard.message[:1].upper()}{hazard.message[1:]}."
    extra = list(hazard.notes) + ([f"Cure: {hazard.cure}"] if hazard.cure else [])
    if extra:
        text += " " + " ".join(f"{note[:1].upper()}{note[1:]}." for note in extra)
    places = [_location(verdict, item) for item in reversed(hazard.involved)]
    result: dict[str, Any] = {
        "ruleId": hazard.kind,
        "ruleIndex": kinds.index(hazard.kind),
        "level": hazard.severity,
        "message": {"text": text},
        "locations": places[:1],
        "partialFingerprints": {"tilescopeHazard/v1": _fingerprint(verdict, hazard)},
        "properties": {"builds": list(hazard.builds), "variable": hazard.variable},
    }
    if places[1:]:
        result["relatedLocations"] = [
            place | {"id": number} for number, place in enumerate(places[1:], start=1)
        ]
    return result


def _location(verdict: Verdict, item: Involved) -> dict[str, Any]:
    """Where an instruction stands: in the source, or in the PTX file that was given."""
    file, line = item.source.file, item.source.line
    if not line:
        file, line = verdict.target.file or "kernel.ptx", item.ptx_line
    who = f"{item.role}, {item.instruction}"
    if item.thread is not None:
        who += f", thread {item.thread} of block {item.block}"
    region: dict[str, Any] = {"startLine": max(1, line)}
    if item.source.line and item.source.code:
        region["snippet"] = {"text": item.source.code}
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": region},
        "message": {"text": who},
    }


def uri(file: str) -> str:
    """A path as a relative URI, from the working folder."""
    shown = display_path(file)
    if os.path.isabs(shown):
        try:
            shown = os.path.relpath(shown)
        except ValueError:  # another drive
            return Path(shown).as_uri()
    return quote(PurePath(shown).as_posix())


def _fingerprint(verdict: Verdict, hazard: Hazard) -> str:
    """What stays the same when lines move: kind, kernel, variable and the lines' code."""
    parts = [hazard.kind, verdict.runs[0].kernel, hazard.variable]
    parts += [item.source.code for item in hazard.involved]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

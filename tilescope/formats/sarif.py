"""Findings as SARIF 2.1.0, for code-review tools.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from urllib.parse import quote

from kernels.source_access import display_path
from simulator import Hazard, Participant
from simulator.hazards.kinds import KINDS, HazardKind

from ..check.checker import Verdict
from ..check.policy import fingerprint
from ..release import version
from ..sessions.recording import Session

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(verdicts: Sequence[Verdict], target: str = "") -> dict[str, object]:
    """Return the log: one run, with one result for each hazard of any launch.

    ``target``: the file that lists the launches, if there is one.
    """
    found: dict[str, dict[str, object]] = {}
    for verdict in verdicts:
        for hazard in verdict.hazards:
            result = _result(hazard, verdict.runs[0].kernel, verdict.target.file or "")
            key = str((result["locations"], result["level"], result["partialFingerprints"]))
            found.setdefault(key if target else str(len(found)), result)
    properties: dict[str, object] = {"target": target} if target else _properties(verdicts[0])
    return _log([*found.values()], _invocation(verdicts), properties)


def _properties(verdict: Verdict) -> dict[str, object]:
    return {
        "target": verdict.target.name,
        "grid": list(verdict.runs[0].grid),
        "block": list(verdict.runs[0].block),
        "builds": list(verdict.builds),
        "checks": list(verdict.checked),
    }


def session_sarif(session: Session, script: str, refused: str = "") -> dict[str, object]:
    """Return the log of a script, with one result for each hazard of launches from one place.

    ``refused``: why the script or program could not be run to its end.
    """
    found: dict[object, dict[str, object]] = {}
    for launch in session.launches:
        for hazard in launch.run.hazards:
            result = _result(hazard, launch.kernel.name, launch.file)
            found.setdefault(
                (launch.place, hazard.kind, str(result["partialFingerprints"])), result
            )
    copies = [_result(hazard, "", script) for hazard in session.order.hazards]
    invocation: dict[str, object] = {"executionSuccessful": not refused}
    if refused:
        notice = {"level": "error", "message": {"text": refused}}
        invocation["toolExecutionNotifications"] = [notice]
    return _log([*found.values(), *copies], invocation, {"target": script})


def _log(
    results: list[dict[str, object]], invocation: dict[str, object], properties: dict[str, object]
) -> dict[str, object]:
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tilescope",
                        "version": version(),
                        "rules": [_rule(row) for row in KINDS.values()],
                    }
                },
                "invocations": [invocation],
                "columnKind": "utf16CodeUnits",
                "results": results,
                "properties": properties,
            }
        ],
    }


def _invocation(verdicts: Sequence[Verdict]) -> dict[str, object]:
    notices = [
        {"level": "warning", "message": {"text": text}}
        for verdict in verdicts
        for text in (
            *(f"{build} build: {reason}" for build, reason in verdict.refused.items()),
            *(f"argument {doubt}" for doubt in verdict.doubts),
        )
    ]
    invocation: dict[str, object] = {"executionSuccessful": True}
    return invocation | ({"toolExecutionNotifications": notices} if notices else {})


def _rule(row: HazardKind) -> dict[str, object]:
    return {
        "id": row.name,
        "name": "".join(part.capitalize() for part in row.name.split("-")),
        "shortDescription": {"text": f"{row.title}."},
        "fullDescription": {"text": f"{row.title}. {row.help}"},
        "help": {"text": row.help},
        "defaultConfiguration": {"level": row.severity},
    }


def _result(hazard: Hazard, kernel: str, file: str) -> dict[str, object]:
    text = f"{hazard.title[:1].upper()}{hazard.title[1:]}."
    certainty = [f"Certainty: {hazard.certainty}"] if hazard.certainty else []
    extra = [*hazard.notes, *certainty] + ([f"Fix: {hazard.fix}"] if hazard.fix else [])
    extra += [f"Follows from it: {other.title}" for other in hazard.follows]
    if extra:
        text += " " + " ".join(f"{note[:1].upper()}{note[1:]}." for note in extra)
    places = [_location(file, item) for item in reversed(hazard.involved)]
    result: dict[str, object] = {
        "ruleId": hazard.kind,
        "ruleIndex": list(KINDS).index(hazard.kind),
        "level": hazard.severity,
        "message": {"text": text},
        "locations": places[:1],
        "partialFingerprints": {"tilescopeHazard/v2": fingerprint(kernel, hazard)},
        "properties": {"builds": list(hazard.builds), "variable": hazard.variable},
    }
    if places[1:]:
        result["relatedLocations"] = [
            place | {"id": number} for number, place in enumerate(places[1:], start=1)
        ]
    return result


def _location(given: str, item: Participant) -> dict[str, object]:
    """Return an instruction's location in the source, or in the given PTX file."""
    file, line = item.source.file, item.source.line
    if not line:
        file, line = given or "kernel.ptx", item.ptx_line
    who = f"{item.role}, {item.instruction}"
    if item.thread is not None:
        who += f", thread {item.thread} of block {item.block}"
    region: dict[str, object] = {"startLine": max(1, line)}
    if item.source.line and item.source.code:
        region["snippet"] = {"text": item.source.code}
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": region},
        "message": {"text": who},
    }


def uri(file: str) -> str:
    """Return a path as a URI relative to the working folder."""
    shown = display_path(file)
    if os.path.isabs(shown):
        try:
            shown = os.path.relpath(shown)
        except ValueError:  # another drive
            return Path(shown).as_uri()
    return quote(PurePath(shown).as_posix())

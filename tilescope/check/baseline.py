"""Baselines: files with known hazards, so that only new or more severe ones fail."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulator import Hazard

from ..cli.errors import UserError
from .policy import fingerprint

_SCHEMA = 1


def read(file: str) -> frozenset[str]:
    """Return the fingerprints in a baseline file.

    Raises:
        UserError: The file is no baseline.
    """
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        known = frozenset(str(hazard["fingerprint"]) for hazard in content["hazards"])
    except FileNotFoundError:
        raise UserError(f"no baseline {file!r}; --write-baseline {file} makes one") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file} is no baseline") from None
    if content.get("schema") != _SCHEMA:
        raise UserError(f"{file} is a baseline of another version")
    return known


def content(hazards: Iterable[tuple[str, Hazard]], known: frozenset[str]) -> dict[str, Any]:
    """Return a baseline of some hazards, each with its kernel's name, and of known fingerprints.

    Hazards are listed for each build, because two builds may word one finding differently.
    """
    found = {
        fingerprint(kernel, hazard): {
            "fingerprint": fingerprint(kernel, hazard), "kind": hazard.kind, "kernel": kernel,
            "severity": hazard.severity, "reach": hazard.reach,
            "variable": hazard.variable, "code": [i.source.code for i in hazard.involved],
        }
        for kernel, hazard in hazards
    }  # fmt: skip
    old = [{"fingerprint": one} for one in sorted(known - found.keys())]
    return {"schema": _SCHEMA, "hazards": [*found.values(), *old]}

"""Whole programs under ``exec``: run one, and read its report."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT


def run(program: Path, *words: str) -> tuple[int, str, dict[str, Any]]:
    """Run a program; return its exit code, what it prints, and the report."""
    report = program.with_name(f"{program.name}-{'-'.join(words)}.json")
    command = [sys.executable, "-m", "tilescope", "exec", "--json", str(report), str(program)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=ROOT, timeout=120)
    return done.returncode, done.stdout, json.loads(report.read_text())


def found(report: dict[str, Any]) -> list[str]:
    """Return the kinds of hazards and notes, sorted."""
    every = [h for launch in report["launches"] for h in launch["hazards"]] + report["copies"]
    return sorted({h["kind"] for h in every})

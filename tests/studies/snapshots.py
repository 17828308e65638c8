"""``python -m tests.studies.snapshots FOLDER``: everything that is reported of the library's
kernels.

For each kernel, the faulty ones included, FOLDER gets the text, JSON and SARIF of ``check``, the
text and JSON of ``run``, the prediction as JSON, and a page's data. Two commits behave the same
if ``diff -r`` finds nothing. Durations are left out. Compare runs of one checkout
path: PTX contains it, and so does its SHA-256.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kernels import library
from tilescope.cli.main import main

PARTS = ("check", "run", "predict", "view")
TIMES = ("seconds", "duration", "startTimeUtc", "endTimeUtc")
"""Keys whose values differ from run to run."""
_SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


def snapshot(name: str, part: str, folder: Path) -> None:
    """Write the files of one command for a kernel."""
    json_file = folder / f"{name}.{part}.json"
    sarif, page = folder / f"{name}.sarif", folder / f"{name}.html"
    words = {
        "check": ["check", name, "--json", str(json_file), "--sarif", str(sarif)],
        "run": ["run", name, "--json", str(json_file)],
        "predict": ["predict", name, "--json", str(json_file)],
        "view": ["view", name, "-o", str(page)],
    }[part]
    text = CliRunner().invoke(main, words).stdout
    if part == "view":
        found = _DATA.search(page.read_text())
        assert found, "the page has no data"
        json_file.write_text(found[1])
        page.unlink()
    else:
        report = folder / f"{name}.{part}.txt"
        report.write_text(_SECONDS.sub("* s", text).replace(str(folder), "FOLDER"))
    for file in (json_file, sarif):
        if file.exists():
            content = untimed(json.loads(file.read_text()))
            file.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def untimed(content: Any) -> Any:
    """JSON without the durations."""
    if isinstance(content, dict):
        return {key: untimed(value) for key, value in content.items() if key not in TIMES}
    return [untimed(value) for value in content] if isinstance(content, list) else content


def run(words: list[str]) -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m tests.studies.snapshots", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=library.names())
    options = parser.parse_args(words)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        print(name, flush=True)
        for part in PARTS:
            snapshot(name, part, options.folder)


if __name__ == "__main__":
    run(sys.argv[1:])

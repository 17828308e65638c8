"""The documentation: the tutorial's commands and what it shows of them, the site's reference."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from simulator.hazards.kinds import KINDS
from tests.support.paths import ROOT
from tilescope.cli.main import main
from tilescope.cli.menu.commands import ENTRIES

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def site():
    spec = importlib.util.spec_from_file_location("site_of_docs", DOCS / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.slow
def test_the_tutorial_says_what_its_commands_print(tmp_path, monkeypatch):
    """What is shown of a command stands in its output, in that order."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["init", "my_kernels"]).exit_code == 0
    output, commands = "", 0
    for language, text in BLOCK.findall((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if language == "sh":
            words = shlex.split(text)
            assert words[0] == "tilescope"
            done = CliRunner().invoke(main, words[1:])
            assert done.exit_code == (1 if "missing" in text and words[1] == "check" else 0), text
            output, commands = plain(done.output), commands + 1
        else:
            at = 0
            for line in filter(None, map(str.strip, map(plain, text.splitlines()))):
                found = output.find(line, at)
                assert found >= 0, line
                at = found + len(line)
    assert commands > 5
    assert (tmp_path / "tiling.html").stat().st_size > 100_000


PAGES = ("README.md", "docs/index.md", "docs/kernels.md", "docs/python.md", "docs/symptoms.md")
"""Pages of which every block is run, in a folder that has the examples alone."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_and_shows_todays_output(page, tmp_path, monkeypatch):
    """What follows ``$ tilescope`` is the whole output; the gate runs lines that install."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    names, count = {}, 0
    for language, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, page, "exec"), names)
        elif text.startswith("$ tilescope "):
            command, _, shown = text.removeprefix("$ tilescope ").partition("\n")
            done = run(command)
            assert (done.stdout + done.stderr * (command[:4] == "exec")).strip() == shown.strip()
        else:
            assert language == "sh", text
            lines = [line for line in text.splitlines() if line.startswith("tilescope ")]
            others = set(text.splitlines()) - set(lines)
            assert all(line.startswith(("python3 -m venv", ". .venv")) for line in others), others
            for line in lines:
                run(line.removeprefix("tilescope "))
        count += 1
    assert count


def run(command):
    """Run a command line of a page in a process of its own; a traceback or a refusal fails."""
    done = subprocess.run(
        [sys.executable, "-m", "tilescope", *shlex.split(command)], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{command}: {done.stderr}"
    return done


def test_pages_name_files_that_are_there():
    for page in ("README.md", *PAGES[1:], "docs/comparison.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            is_made = page.startswith("docs/") and link in site().reference()
            assert is_made or ((ROOT / page).parent / link).exists(), f"{page}: {link}"
        for file in re.findall(r"\bexamples/[\w./]+\w", text):
            assert (ROOT / file).exists(), f"{page}: {file}"


def test_no_page_says_that_an_index_has_it():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]
    for page in pages:
        assert not re.search(r"pip install '?tilescope", page.read_text(encoding="utf-8")), page


def test_the_reference_is_made_of_the_code():
    pages = site().reference()
    for name in ENTRIES:
        assert f"## tilescope {name}\n" in pages["commands.md"]
    for kind in KINDS.values():
        page = pages[f"hazard-{kind.name}.md"]
        assert page.startswith(f"# {kind.name}\n\n{kind.title}")
        assert "```cuda\n" in page
        assert kind.help in page
        assert f"(hazard-{kind.name}.md)" in pages["hazards.md"]
    assert "### simulator.launch\n" in pages["api.md"]
    assert "schedule" in pages["api.md"]


def test_docstrings_become_lists():
    text = site().rendered("Do ``x``.\n\nArgs:\n    a: One,\n        of two.\n    b: Two.\n\nEnd.")
    assert text == "Do `x`.\n\n\n**Args**\n\n- **a**: One,\n        of two.\n- **b**: Two.\n\nEnd."


def test_every_kind_has_a_reason_and_no_other():
    site()
    import hazard_reasons

    assert hazard_reasons.REASONS.keys() == KINDS.keys()


EXAMPLES = sorted((DOCS / "hazards").glob("*.cu"))


@pytest.mark.slow
@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_the_example_of_a_kind_has_that_hazard(file, tmp_path, monkeypatch):
    """And nothing else, by the command in its first line; ``right`` says what to change."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(file, tmp_path)
    text = file.read_text(encoding="utf-8")
    name, *words = shlex.split(text.splitlines()[0].removeprefix("// tilescope "))
    done = run(shlex.join([name, "--json", "found.json", *words]))
    content = json.loads(Path("found.json").read_text())
    lists = [content.get("hazards", []), content.get("copies", [])]
    lists += [launch["hazards"] for launch in content.get("launches", [])]
    assert {hazard["kind"] for some in lists for hazard in some} == {file.stem}, done.stdout
    assert done.returncode == (0 if KINDS[file.stem].severity == "note" else 1)
    assert "// right: " in text


def test_every_page_stands_in_the_navigation():
    nav = (DOCS / "zensical.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'"([\w-]+\.md)"', nav))
    assert named == {file.name for file in DOCS.glob("*.md")} | set(site().reference())


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("zensical")
    site().main(str(tmp_path / "site"))
    for name in (
        "index.html",
        "tutorial.html",
        "hazard-raw-race.html",
        "api.html",
        "gallery/race.html",
    ):
        assert (tmp_path / "site" / name).stat().st_size > 5000

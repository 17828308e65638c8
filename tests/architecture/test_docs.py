"""The documentation: the tutorial's commands and what it shows of them, the site's reference."""

import importlib.util
import re
import shlex

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


@pytest.mark.slow
def test_the_readme_shows_the_report_as_it_is(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = [block for _, block in BLOCK.findall(text) if block.startswith("$ tilescope ")]
    assert shown
    for block in shown:
        command, _, report = block.removeprefix("$ tilescope ").partition("\n")
        printed = CliRunner().invoke(main, shlex.split(command)).stdout
        assert printed.strip() == report.strip()


def test_the_reference_is_made_of_the_code():
    pages = site().reference()
    for name in ENTRIES:
        assert f"## tilescope {name}\n" in pages["commands.md"]
    for kind in KINDS.values():
        assert f"## {kind.name}\n\n{kind.title}" in pages["hazards.md"]
    assert "### simulator.launch\n" in pages["api.md"]
    assert "schedule" in pages["api.md"]
    assert "](docs/" not in pages["index.md"]


def test_every_page_stands_in_the_navigation():
    nav = (DOCS / "zensical.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'"([\w-]+\.md)"', nav))
    assert named == {file.name for file in DOCS.glob("*.md")} | set(site().reference())


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("zensical")
    site().main(str(tmp_path / "site"))
    for name in ("index.html", "tutorial.html", "hazards.html", "api.html"):
        assert (tmp_path / "site" / name).stat().st_size > 5000

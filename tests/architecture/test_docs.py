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

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
import tilescope
from kernels import Kernel
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
        [sys.executable, "-m", "tilescope", *shlex.split(command, comments=True)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "BROWSER": "true"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{command}: {done.stderr}"
    return done


FRAGMENTS = {
    "device.md": (), "native.md": (), "page.md": ("my.cu",), "predict.md": ("my.cu", "mygpu.json"),
    "programs.md": ("main.cu", "part.cpp", "include"), "scripts.md": ("train_step.py",),
    "sweep.md": ("my.cu",), "textures.md": (),
}  # fmt: skip
"""Pages whose blocks take a kernel, arrays or files for granted, with the files they name."""
ELSEWHERE = {"tutorial.md": "above", "testing.md": "tests/tilescope/testing/test_plugin.py"}
"""Pages with blocks that other tests run."""
NOT_RUN = {
    "tilescope validate": "a GPU", "tilescope time": "a GPU", "tilescope counters": "a GPU",
    "python -m benchmarks": "a GPU", "python -m pytest": "a GPU", "device.": "a GPU",
    "from distributed": "a cluster", "import ray": "a cluster", "pip install": "an index",
    "nvcc ": "a program's build", "NVCC_APPEND_FLAGS": "a program's build",
    "load_inline": "PyTorch",
    "tilescope exec ./a.out": "a built program",
    "tilescope exec --json report.json ./a.out": "a built program",
}  # fmt: skip
"""Beginnings of lines, or words in Python, that need what a test machine may lack."""
MAIN = """
#include <cstdio>
__global__ void k(float* x) { x[threadIdx.x] = 1; }
int main() { float* d; cudaMalloc(&d, 256); k<<<1, 64>>>(d); cudaFree(d); }
"""
STEPS = """
extern "C" __global__ void fill(float* x) { x[blockIdx.x * 128 + threadIdx.x] = 1; }
extern "C" __global__ void scale(float* x) { x[blockIdx.x * 128 + threadIdx.x] *= 2; }
extern "C" __global__ void sample(float* out, cudaTextureObject_t image, cudaSurfaceObject_t to) {
    out[threadIdx.x] = tex2D<float>(image, 0.5f, 0.5f);
    surf2Dwrite(1.0f, to, threadIdx.x * 4, 0);
}
"""
SCRIPT = f"""
import numpy as np, simulator
from kernels import Kernel
fill = Kernel.from_cuda({STEPS!r}, "fill")
simulator.launch(fill, 1, 128, [np.zeros(128, np.float32)])
"""


def provide(folder, page):
    """Write the files that a page names, as a reader would have them."""
    tiled = (ROOT / "kernels/library/matmul/tiled.cu").read_text(encoding="utf-8")
    files = {
        "my.cu": MAIN if page == "predict.md" else tiled, "main.cu": MAIN,
        "part.cpp": "int part() { return N; }\n", "include/part.h": "int part();\n",
        "train_step.py": SCRIPT, "mygpu.json": '{"gpu": "h200", "rates": {}}',
    }  # fmt: skip
    for name, text in files.items():
        if name.split("/")[0] in FRAGMENTS[page]:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def names_in_fragments():
    """Return what fragments of Python take for granted: kernels, arrays and packages."""
    fill, scale, sample = (Kernel.from_cuda(STEPS, name) for name in ("fill", "scale", "sample"))
    x, out, image = (np.ones(shape, np.float32) for shape in (512, 8, (8, 8)))
    return {
        "np": np, "simulator": simulator, "tilescope": tilescope, "fill": fill, "scale": scale,
        "x": x, "kernel": fill, "grid": 4, "block": 128, "args": [x], "out": out, "image": image,
        "picture": image.copy(),
    }, {"textures.md": {"kernel": sample, "grid": 1, "block": 8}}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page", FRAGMENTS)
def test_fragments_run_with_what_they_take_for_granted(page, tmp_path, monkeypatch):
    """A shown output may be a part of today's; a line that is not run has a reason above."""
    monkeypatch.chdir(tmp_path)
    provide(tmp_path, page)
    names, special = names_in_fragments()
    names |= special.get(page, {})
    for language, text in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        if text.startswith("$ tilescope "):
            command, _, shown = text.removeprefix("$ tilescope ").partition("\n")
            assert plain(shown) in plain(run(command).stdout)
        elif language == "python" and not any(word in text for word in NOT_RUN):
            exec(compile(text, page, "exec"), names)
        elif language == "sh":
            for line in text.replace("\\\n", "").splitlines():
                if not line.startswith(tuple(NOT_RUN)):
                    assert line.startswith("tilescope "), line
                    run(line.removeprefix("tilescope "))


def test_every_page_with_blocks_is_run_and_every_exception_is_needed():
    texts = {page.name: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}
    run_pages = {Path(page).name for page in PAGES} | {*FRAGMENTS} | {*ELSEWHERE}
    for name, text in texts.items():
        languages = {language for language, _ in BLOCK.findall(text)}
        assert name in run_pages or not languages & {"sh", "python"}, name
    for line in NOT_RUN:
        assert any(line in texts[page] for page in FRAGMENTS), line


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
    assert "\nrebuild(self, build: str) -> Kernel\n" in pages["api.md"]  # no quotes
    assert "\n    schedule: str | int = 'lockstep',\n" in pages["api.md"]


def test_docstrings_become_lists():
    text = site().rendered("Do ``x``.\n\nArgs:\n    a: One,\n        of two.\n    b: Two.\n\nEnd.")
    assert text == "Do `x`.\n\n\n**Args**\n\n- **a**: One,\n        of two.\n- **b**: Two.\n\nEnd."


def test_every_kind_has_a_reason_and_no_other():
    site()
    import hazard_reasons

    assert hazard_reasons.REASONS.keys() == KINDS.keys()


def test_every_kind_says_how_to_repair_it():
    """By a sentence in the imperative, or advice for the case."""
    for kind in KINDS.values():
        first_words = {one.split()[0] for one in re.split(r"(?<=[.:;,]) ", kind.help)}
        assert first_words & VERBS, kind.name


VERBS = {
    "After", "Call", "Check", "Copy", "Free", "Give", "Guard", "Let", "Look", "Move", "Pad", "Put",
    "Remove", "Set", "Use", "Write", "check",
}  # fmt: skip
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
        "search.js",
    ):
        assert (tmp_path / "site" / name).stat().st_size > 5000
    scripts = re.findall('<script src="([^"]*)"', (tmp_path / "site/index.html").read_text())
    assert "./iframe-worker.js" in scripts  # the search's worker, of a page from disk
    assert all((tmp_path / "site" / name).is_file() for name in scripts), scripts

"""The release: sdist and wheel are built, installed and used, away from the checkout."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.architecture.tree import PACKAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {version}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation
    heads = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert heads[0] == version


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sdist, and the wheel that is made of it, from what git knows."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("release")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "tree" / name)
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(folder / "tree")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.mark.slow
def test_the_wheel_works_where_no_checkout_is(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with ZipFile(wheel) as content:
        names = set(content.namelist())
        content.extractall(built / "installed")
    for room in PACKAGES:
        for path in (ROOT / room).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                assert path.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]
    variables = {**os.environ, "PYTHONPATH": str(built / "installed")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tilescope", *words]
        return subprocess.run(
            command, cwd=built, env=variables, capture_output=True, text=True, check=False
        )

    where = "import kernels, simulator, tilescope; print(tilescope.__file__, tilescope.version())"
    done = subprocess.run(
        [sys.executable, "-c", where], cwd=built, env=variables, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.split() == [
        str(built / "installed" / "tilescope" / "__init__.py"), PROJECT["version"],
    ]  # fmt: skip
    assert run("init", "mine").returncode == 0
    launch = ("--grid", "4", "--block", "128", "f32[500]=ones", "f32[4]", "500")
    assert "no hazards" in run("check", "mine/blocksum.cu", *launch).stdout
    assert "limited by" in run("predict", "mine/blocksum.cu", *launch).stdout
    assert run("view", "mine/blocksum.cu", *launch, "-o", "page.html").returncode == 0
    assert (built / "page.html").stat().st_size > 100_000
    assert "verdict: no hazards" in run("run", "matmul_tiled", "--size", "16").stdout


@pytest.mark.slow
def test_the_sdist_has_tests_docs_and_the_gate(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert names >= {
        ".ci/run", "README.md", "SECURITY.md", "CITATION.cff", "docs/race.png",
        "tests/golden/shared_raw.txt", "examples/row_sums.cu", "docs/zensical.toml",
    }  # fmt: skip

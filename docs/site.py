"""Builds the docs as a site: this folder's pages, and the reference out of the code.

python docs/site.py FOLDER        # needs the extras docs and test
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent


def main(folder: str) -> None:
    """Write the site into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        made = work / "docs"
        made.mkdir()
        for file in (ROOT / "docs").iterdir():
            if file.suffix in (".md", ".png"):
                shutil.copy(file, made)
        for name, text in reference().items():
            (made / name).write_text(text, encoding="utf-8")
        shutil.copy(ROOT / "docs" / "zensical.toml", work)
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=work, check=True)
        shutil.copytree(work / "site", folder, dirs_exist_ok=True)


def reference() -> dict[str, str]:
    """The pages that are made of the code, by file name."""
    return {
        "index.md": home(),
        "commands.md": commands(),
        "api.md": api(),
        "hazards.md": hazards(),
    }


def home() -> str:
    """The README, whose links into this folder become those of the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\((?:\./)?docs/", "(", text)


def commands() -> str:
    """What ``--help`` says of each command."""
    from tilescope.cli.main import main as program

    context = click.Context(program, info_name="tilescope", terminal_width=96, max_content_width=96)
    parts = ["# Commands", fenced(program.get_help(context))]
    assert isinstance(program, click.Group)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        inner = click.Context(
            command, info_name=name, parent=context, terminal_width=96, max_content_width=96
        )
        parts += [f"## tilescope {name}", fenced(command.get_help(inner))]
    return "\n\n".join(parts) + "\n"


def api() -> str:
    """Signature and docstring of what the packages give."""
    parts = ["# Python", "What `import kernels, simulator, device, tilescope` gives."]
    for package in ("kernels", "simulator", "device", "tilescope"):
        module = importlib.import_module(package)
        parts += [f"## {package}", inspect.getdoc(module) or ""]
        for name in module.__all__:
            thing = getattr(module, name)
            parts += [f"### {package}.{name}", *described(name, thing)]
            if inspect.isclass(thing) and not issubclass(thing, BaseException):
                for own, method in vars(thing).items():
                    method = getattr(method, "__func__", method)
                    if not own.startswith("_") and inspect.isfunction(method):
                        parts += [f"#### {name}.{own}", *described(own, method)]
    return "\n\n".join(parts) + "\n"


def described(name: str, thing: object) -> list[str]:
    """A signature, if there is one, and a docstring as it stands in the source."""
    if not callable(thing):
        return [fenced(repr(thing))] if isinstance(thing, str | tuple | frozenset) else []
    try:
        signature = f"{name}{inspect.signature(thing)}"
    except ValueError:
        signature = name
    return [fenced(signature, "python"), fenced(inspect.getdoc(thing) or "")]


def hazards() -> str:
    """Every kind: what it means, a kernel that has it, its report, and the kernel without it."""
    from kernels import library
    from simulator.hazards.kinds import KINDS
    from tests.kernels.library.test_faulty import TABLE

    parts = [
        "# Hazards",
        "Each kind that a report names. The examples come along: "
        "`tilescope check faulty_shared_raw`; with `RIGHT` true they are mended.",
    ]
    for kind in KINDS.values():
        check = f", found by the check `{kind.check}`" if kind.check else ""
        parts += [f"## {kind.name}", f"{kind.title}: {kind.severity}{check}. {kind.help}"]
        row = next((row for row in TABLE if row.kind == kind.name), None)
        if row is not None:
            entry = library.get(f"faulty_{row.name}")
            golden = ROOT / "tests" / "golden" / f"{row.name}.txt"
            report = golden.read_text(encoding="utf-8").partition("\n\n")[0]
            source = entry.path.read_text(encoding="utf-8")
            parts += [fenced(function(source, row.name), "cuda"), fenced(report)]
    return "\n\n".join(parts) + "\n"


def function(source: str, name: str) -> str:
    """A kernel's text, with the comment above it."""
    lines = source.splitlines()
    at = next(i for i, line in enumerate(lines) if re.search(rf"__global__.*\b{name}\(", line))
    first = at
    while first and lines[first - 1].startswith(("template", "//")):
        first -= 1
    last = next(i for i in range(at, len(lines)) if lines[i].startswith("}"))
    return "\n".join(lines[first : last + 1])


def fenced(text: str, language: str = "text") -> str:
    """A block of code that nothing in it can end."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(*sys.argv[1:])

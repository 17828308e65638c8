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
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from simulator.hazards.kinds import HazardKind

_MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
LONGEST = 88
"""Characters of a signature in one line."""
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))  # hazard_reasons


def main(folder: str) -> None:
    """Write the site into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        made = work / "docs"
        made.mkdir()
        for file in (ROOT / "docs").iterdir():
            if file.suffix in (".md", ".png", ".js"):
                shutil.copy(file, made)
        for name, text in reference().items():
            (made / name).write_text(text, encoding="utf-8")
        shutil.copy(ROOT / "docs" / "zensical.toml", work)
        draw_gallery(made)
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=work, check=True)
        shutil.copytree(work / "site", folder, dirs_exist_ok=True)


def reference() -> dict[str, str]:
    """The pages that are made of the code, by file name."""
    return {
        "commands.md": commands(),
        "api.md": api(),
        "gallery.md": gallery(),
        **hazards(),
    }


GALLERY = {
    "tiled": ("A tiled matrix product, 6x6: every value can be followed",
              ["matmul_tiled", "--size", "6"]),
    "against": ("Naive beside tiled",
                ["matmul_naive", "--size", "64", "--compare", "matmul_tiled"]),
    "race": ("A missing barrier: the moment of the race, and the same with the fix",
             ["matmul_missing_first_barrier", "--size", "32"]),
    "banks": ("Bank conflicts of a transposed tile", ["matmul_transposed", "--size", "32"]),
    "scan": ("A prefix sum in shared memory", ["scan_blelloch", "--size", "256"]),
}  # fmt: skip
"""Pages that are drawn when the site is built: title, and words of ``tilescope view``."""


def gallery() -> str:
    """Links to live pages, each with its command."""
    rows = [
        f"| [{title}](gallery/{name}.html) | `tilescope view {' '.join(words)} --open` |"
        for name, (title, words) in GALLERY.items()
    ]
    text = "Pages as `tilescope view` writes them, live: play, step, point at a value."
    return "\n".join(["# Gallery", "", text, "", "| page | command |", "| --- | --- |", *rows, ""])


def draw_gallery(folder: Path) -> None:
    """Write the pages into ``folder/gallery``."""
    (folder / "gallery").mkdir()
    for name, (_, words) in GALLERY.items():
        file = folder / "gallery" / f"{name}.html"
        command = [sys.executable, "-m", "tilescope", "view", *words, "-q", "-o", str(file)]
        subprocess.run(command, check=True)


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
        signature = spelled(name, inspect.signature(thing))
    except ValueError:
        signature = name
    return [fenced(signature, "python"), rendered(inspect.getdoc(thing) or "")]


class Bare(str):
    """An annotation that stands in the source as it does here: without quotes."""

    def __repr__(self) -> str:
        return str(self)


def spelled(name: str, signature: inspect.Signature) -> str:
    """A signature as the source has it, a parameter a line if it is long."""

    def bare(annotation: object) -> object:
        return Bare(annotation) if isinstance(annotation, str) else annotation

    given = [one.replace(annotation=bare(one.annotation)) for one in signature.parameters.values()]
    plain = signature.replace(parameters=given, return_annotation=bare(signature.return_annotation))
    text = _MODULES.sub("", f"{name}{plain}")
    if len(text) <= LONGEST:
        return text
    lines = [f"    {_MODULES.sub('', str(one))}," for one in given]
    own = [n for n, one in enumerate(given) if one.kind is one.KEYWORD_ONLY]
    if own and not any(one.kind is one.VAR_POSITIONAL for one in given):
        lines.insert(own[0], "    *,")
    end = _MODULES.sub("", str(plain.replace(parameters=[]))).removeprefix("()")
    return "\n".join([f"{name}(", *lines, f"){end}"])


def rendered(docstring: str) -> str:
    """A docstring of Google's style as Markdown: sections become lists, a line an entry."""
    lines, in_section = list[str](), False
    for line in docstring.replace("``", "`").splitlines():
        if re.fullmatch(r"(Args|Attributes|Raises|Returns|Yields):", line):
            lines += ["", f"**{line[:-1]}**", ""]
            in_section = True
        elif in_section and re.match(r"    \S", line):
            name, colon, text = line.strip().partition(":")
            lines.append(f"- **{name}**{colon}{text}" if colon else f"- {name}")
        elif line and not line.startswith(" "):
            in_section = False
            lines.append(line)
        else:
            lines.append(line if in_section else line.strip())
    return "\n".join(lines).strip()


def hazards() -> dict[str, str]:
    """A page for each kind of hazard, and one that lists them."""
    from simulator.hazards.kinds import KINDS

    rows = [
        f"| [{kind.name}](hazard-{kind.name}.md) | {kind.severity} | {kind.title} |"
        for kind in KINDS.values()
    ]
    head = [
        "# Hazards",
        "Each kind that a report names: an example, why it is wrong on hardware, how to fix it. "
        "`tilescope help raw-race` says it in the terminal.",
        "\n".join(["| kind | severity | what |", "| --- | --- | --- |", *rows]),
    ]
    return {
        "hazards.md": "\n\n".join(head) + "\n",
        **{f"hazard-{kind.name}.md": hazard(kind) for kind in KINDS.values()},
    }


def hazard(kind: HazardKind) -> str:
    """The page of one kind."""
    from hazard_reasons import REASONS

    check = f"found by the check `{kind.check}`" if kind.check else "found without a check"
    parts = [f"# {kind.name}", f"{kind.title}: {kind.severity}, {check}."]
    parts += ["## Example", *example(kind.name)]
    parts += ["## Why it is wrong on hardware", REASONS[kind.name]]
    parts += ["## How to fix it", kind.help]
    if kind.is_race:
        parts.append(
            "`tilescope check` searches for a fix, compiles it in both builds and runs it; `--fix` "
            "writes it to the file. `tilescope view` shows the moment, with the fix and without."
        )
    return "\n\n".join(parts) + "\n"


def example(kind: str) -> list[str]:
    """A kernel or program that has the kind, and its report or the command for it."""
    from kernels import library
    from tests.kernels.library.test_faulty import TABLE

    file = ROOT / "docs" / "hazards" / f"{kind}.cu"
    if file.is_file():
        return [fenced(file.read_text(encoding="utf-8").rstrip(), "cuda")]
    row = next(row for row in TABLE if row.kind == kind)
    entry = library.get(f"faulty_{row.name}")
    golden = ROOT / "tests" / "golden" / f"{row.name}.txt"
    report = golden.read_text(encoding="utf-8").partition("\n\n")[0]
    source = entry.path.read_text(encoding="utf-8")
    return [
        f"It comes along: `tilescope check faulty_{row.name}`, and without the mistake (`RIGHT` is "
        f"true) `tilescope check faulty_{row.name}_fixed`.",
        fenced(function(source, row.name), "cuda"),
        fenced(report),
    ]


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

"""``[tool.tilescope]`` of a ``pyproject.toml``: a repository's kernels, and changed files."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernels.compiler.headers import named, named_folders

from ..sessions.pipeline import Pipeline, fits, toml
from .errors import UserError

NAME = "pyproject.toml"
_KEYS: dict[str, tuple[type, ...]] = {"fail-on": (str,), "kernels": (list,)}
_NAMED = re.compile(r"\{(\w+)\}")
_PRE_INCLUDED = re.compile(r"^(?:-include|--pre-include)[=\n]?(.+)$", re.M)


def is_project(target: str) -> bool:
    """Whether a target is a ``pyproject.toml``."""
    return Path(target).name == NAME


def read_project(path: Path) -> tuple[Pipeline, str]:
    """Return a repository's kernels as independent launches, and its ``fail-on``.

    Raises:
        UserError: The file cannot be read, or has no such table.
    """
    table: Any = toml(path)
    try:
        for name in ("tool", "tilescope"):
            table = table.get(name, {})
            if not isinstance(table, dict):
                raise UserError(f"{name} = {table!r} is not a table")
        fits(table, _KEYS)
        kernels = table.get("kernels", [])
        if not kernels or not all(isinstance(one, dict) for one in kernels):
            raise UserError("no [[tool.tilescope.kernels]]")
        fail_on = table.get("fail-on", "error")
        if fail_on not in ("error", "warning"):
            raise UserError(f"fail-on = {fail_on!r} is not error or warning")
        sized = [list(_sized(kernel)) for kernel in kernels]
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    heads = Pipeline(path, {}, kernels, {}).lines()
    lines = [line for line, some in zip(heads, sized, strict=True) for _ in some]
    return Pipeline(path, {}, [one for some in sized for one in some], {}, lines), fail_on


def _sized(kernel: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a kernel's launch for each of its ``sizes``, with names in braces replaced."""
    rest = {key: value for key, value in kernel.items() if key != "sizes"}
    sizes = kernel.get("sizes", [{}])
    if not isinstance(sizes, list) or not all(isinstance(size, dict) for size in sizes):
        raise UserError(f"sizes = {sizes!r} is not a list of tables, as in [{{n = 64}}]")
    for size in sizes:
        try:
            yield {key: _filled(value, size, key != "args") for key, value in rest.items()}
        except KeyError as error:
            raise UserError(f"{error} is no size of {size}") from None


def _filled(value: Any, size: dict[str, Any], number: bool) -> Any:
    if isinstance(value, list):
        return [_filled(one, size, number) for one in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    made = _NAMED.sub(lambda m: str(size[m[1]]), value)
    return int(made) if number and made.isdecimal() else made


def changed_since(ref: str, folder: Path) -> set[Path]:
    """Return a repository's files that differ from a commit or are untracked.

    Raises:
        UserError: There is no such commit, or no repository.
    """
    asked = (["rev-parse", "--show-toplevel"],
             ["diff", "--name-only", "-z", "--end-of-options", ref, "--"],
             ["ls-files", "--others", "--exclude-standard", "--full-name", "-z"])  # fmt: skip
    answers = []
    for words in asked:
        try:
            done = subprocess.run(
                ["git", *words], cwd=folder, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise UserError(f"--since needs git: {error}") from None
        if done.returncode:
            why = done.stderr.strip().splitlines() or ["git failed"]
            raise UserError(f"--since {ref}: {why[0]}")
        answers.append(done.stdout)
    root = Path(answers[0].strip())
    return {(root / name).resolve() for text in answers[1:] for name in text.split("\0") if name}


def touches(file: Path, changed: set[Path], options: Sequence[str] = ()) -> bool:
    """Whether a source file or one of its headers has changed.

    ``options``: compiler options, whose ``-I`` folders are searched; the toolkit's are not.
    """
    folders = named_folders(options)
    todo, visited = [file, *map(Path, _PRE_INCLUDED.findall("\n".join(options)))], set[Path]()
    while todo:
        try:
            one = todo.pop().resolve()
            there = one.is_file()
        except (OSError, ValueError):  # no name of a file
            continue
        if one in changed:
            return True
        if there and one not in visited:
            visited.add(one)
            names = named(one.read_text(encoding="utf-8", errors="replace"))
            todo += [folder / name for name in names for folder in (one.parent, *folders)]
    return False

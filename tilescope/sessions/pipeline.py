"""Several launches on the same arrays, described in a TOML file."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Kernel, unset
from kernels.library import Agreement, Expected, Launch
from kernels.source_access import missing

from ..cli.argument_spec import parse_arguments
from ..cli.errors import UserError
from ..cli.kernel_names import only_kernel
from ..cli.menu.choices import CLOSE
from ..cli.references import near, tolerances
from ..cli.target import Target, check_arguments

DEFAULT_STREAM = "default"
_KINDS = {str: "text in quotes", int: "a whole number", bool: "true or false", list: "a list",
          dict: "a table"}  # fmt: skip
_SHAPE = (int, list)
_LAUNCH: dict[str, tuple[type, ...]] = {
    "file": (str,), "kernel": (str,), "grid": _SHAPE, "block": _SHAPE, "shared": (int,),
    "args": (list,), "symbols": (dict,), "cooperative": (bool,), "cluster": _SHAPE,
    "options": (list,), "stream": (str,), "wait": (list,),
}  # fmt: skip
_TOP: dict[str, tuple[type, ...]] = {
    "arrays": (dict,), "launch": (list,), "expect": (dict,), "close": (str,), "seed": (int,),
}  # fmt: skip


@dataclass
class Pipeline:
    """Arrays by name, launches in order, and expected contents at the end.

    Attributes:
        path: The file; kernel files are relative to it.
        arrays: Arrays by name; those without an initial content are uninitialised.
        launches: Tables of the file.
        expected: Expected contents by name.
        heads: Line of each launch, if known.
        seed: Seed of random contents in launches; ``None`` for independent kernels.
    """

    path: Path
    arrays: dict[str, Any]
    launches: list[dict[str, Any]]
    expected: dict[str, Expected]
    heads: list[int] = field(default_factory=list)
    seed: int | None = None

    def targets(self, build: str | None = None, warns: bool = True) -> Iterator[Target]:
        """Yield each launch on the current arrays; run it before requesting the next.

        ``warns``: whether to print warnings on the arguments, which the runs have, too.

        Raises:
            UserError: A launch is invalid.
            KernelError: Its kernel cannot be compiled.
        """
        for number, table in enumerate(self.launches, 1):
            try:
                yield self._target(table, build, number, warns)
            except (UserError, KeyError) as error:
                text = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise UserError(f"{self.path}: launch {number}: {text}") from None

    def check_streams(self) -> None:
        """Check that each ``wait`` names a stream of some launch.

        Raises:
            UserError: It does not.
        """
        known = {DEFAULT_STREAM, *(table.get("stream", DEFAULT_STREAM) for table in self.launches)}
        for number, table in enumerate(self.launches, 1):
            for name in table.get("wait", ()):
                if name not in known:
                    listed = ", ".join(sorted(known))
                    raise UserError(
                        f"{self.path}: launch {number}: wait = {name!r}: no launch is in such a "
                        f"stream; there are: {listed}"
                    )

    def lines(self) -> list[int]:
        """Return the line at which each launch begins, from 1."""
        if self.heads:
            return self.heads
        text = self.path.read_text(encoding="utf-8").splitlines()
        head = r"\s*\[\[\s*(?:launch|tool\.tilescope\.kernels)\b"
        found = [n for n, line in enumerate(text, 1) if re.match(head, line)]
        return found if len(found) == len(self.launches) else [0] * len(self.launches)

    def results(self) -> list[Agreement]:
        """Compare the current arrays with the expected contents."""
        places = {name: i for i, name in enumerate(self.arrays) if name in self.expected}
        made = Launch((1,), (1,), list(self.arrays.values()), places, lambda _: self.expected)
        return made.compare(self.expected)

    def _target(
        self, table: Mapping[str, Any], build: str | None, number: int, warns: bool
    ) -> Target:
        fits(table, _LAUNCH)
        file = self.path.parent / table["file"]
        if not file.is_file():
            raise UserError(missing(file))
        entry = table.get("kernel")
        options = tuple(map(str, table.get("options", ())))
        if file.suffix == ".ptx":
            kernel = Kernel.from_ptx(file, entry)
        else:
            named = entry or only_kernel(str(file), options)
            kernel = Kernel.from_cuda(file, named, options=options, build=build or "device")
        rng = np.random.default_rng(0 if self.seed is None else [self.seed, number])
        args = [self._argument(word, rng) for word in table.get("args", ())]
        given = table.get("symbols", {})
        symbols = {name: self._argument(word, rng) for name, word in given.items()}
        cluster = table.get("cluster")
        target = Target(
            kernel.name, kernel, _shape(table["grid"]), _shape(table["block"]), args,
            table.get("shared", 0), file=str(file), symbols=symbols,
            how={"cooperative": table.get("cooperative", False),
                 "cluster": None if cluster is None else _shape(cluster)},
        )  # fmt: skip
        check_arguments(target, warns)
        return target

    def _argument(self, word: Any, rng: np.random.Generator) -> Any:
        """Return the value of a number, an array's name, or an argument word."""
        if isinstance(word, (int, float)):
            return word
        if isinstance(word, list):
            return tuple(self._argument(one, rng) for one in word)
        if not isinstance(word, str):
            raise UserError(f"{word!r} is no argument")
        if word in self.arrays:
            return self.arrays[word]
        word = _from(self.path, word)
        return parse_arguments([word], rng, list(self.arrays), list(self.arrays.values()))[0]


def _from(path: Path, word: str) -> str:
    """Return a word whose ``@file.npy`` is resolved relative to the pipeline file, if it exists."""
    before, at, file = word.partition("@")
    beside = path.parent / file
    return f"{before}@{beside}" if at and beside.is_file() else word


def read(path: Path) -> Pipeline:
    """Read a pipeline file.

    Raises:
        UserError: The file is no pipeline.
    """
    content = toml(path)
    try:
        return _pipeline(path, content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file.

    Raises:
        UserError: The file is missing or invalid.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(missing(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: brackets in brackets, too deep to read") from None


def _pipeline(path: Path, content: Mapping[str, Any]) -> Pipeline:
    fits(content, _TOP)
    launches = content.get("launch", [])
    if not launches:
        raise UserError("no [[launch]]")
    if not all(isinstance(table, dict) for table in launches):
        raise UserError("a launch is a table: [[launch]]")
    if content.get("seed", 0) < 0:
        raise UserError(f"seed = {content['seed']}: from 0 on")
    seed = content.get("seed", 0)
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, word in content.get("arrays", {}).items():
        made = parse_arguments([_from(path, str(word))], rng)[0]
        if not isinstance(made, np.ndarray):
            raise UserError(f"{name} = {word!r} is no array")
        arrays[name] = made if "=" in word else unset(made.shape, made.dtype)
    close = content.get("close")
    tolerances(close or CLOSE)
    if close and not content.get("expect"):
        raise UserError("close says how nearly: give [expect], too")
    expected = {}
    for name, word in content.get("expect", {}).items():
        if name not in arrays:
            raise UserError(f"no array {name!r} to expect something of")
        array = arrays[name]
        kind = f"{array.dtype.kind}{8 * array.dtype.itemsize}"
        shape = ",".join(map(str, array.shape))
        given = word if isinstance(word, str) and "[" in word else f"{kind}[{shape}]={word}"
        try:
            wanted = np.asarray(parse_arguments([_from(path, given)], rng)[0])
        except UserError as error:
            message = str(error).replace(f"argument {given!r}", f"[expect] {name} = {word!r}")
            raise UserError(message) from None
        if wanted.shape != array.shape:
            raise UserError(f"{name} should become {word!r}, another shape than its {array.shape}")
        expected[name] = near(array, wanted, close)
    return Pipeline(path, arrays, launches, expected, seed=seed)


def fits(table: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> None:
    """Reject unknown keys and values of wrong types in a table."""
    for key, value in table.items():
        if key not in kinds:
            raise UserError(f"no such key: {key}")
        if type(value) not in kinds[key]:
            wanted = " or ".join(_KINDS[kind] for kind in kinds[key])
            raise UserError(f"{key} = {value!r} is not {wanted}")


def _shape(value: Any) -> tuple[int, ...]:
    numbers = [value] if isinstance(value, int) else list(value)
    if not all(isinstance(n, int) and n > 0 for n in numbers) or not 1 <= len(numbers) <= 3:
        raise UserError(f"{value!r} is no shape: one to three whole numbers")
    return tuple(numbers)

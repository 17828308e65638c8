"""A program's launches as commands, and messages about incomplete ones."""

import itertools
import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

import click

from kernels.host.host_arguments import element_word
from kernels.host.host_launches import HostLaunch
from kernels.source.element_types import spelled, vector_of
from kernels.source.structures import layout_of
from kernels.source_access import plain_name

from .layout import columns, fitted

_SHAPES = {
    "--grid": ("blocks, x first", "4"),
    "--block": ("threads of a block, x first", "256"),
    "--shared": ("bytes of dynamic shared memory", "4096"),
}
HANDLES = {
    "cudaTextureObject_t": "texture:f32[64,64]", "cudaSurfaceObject_t": "surface:f32[64,64]",
}  # fmt: skip
_MAX_LINES = 24
"""Columns for a parameter's name."""
_ELEMENTS, _NUMBER = 1024, 64
"""Elements of an array, and a whole number, where a launch says nothing of sizes."""


def typed() -> str:
    """Return the command line of the user, if it launches a kernel."""
    context = click.get_current_context(silent=True)
    launches = context and any(one.name == "launch" for one in context.command.params)
    return f"tilescope {context.info_name if context and launches else 'run'}"


def command(words: Iterable[str], indent: str = "", name: str = "") -> list[str]:
    """Return a command line for copying, in several lines if it is long.

    ``name``: the command; by default that of the user.
    """
    lines = [indent + (f"tilescope {name}" if name else typed())]
    for word in words:
        quoted = word if word == "?" else shlex.quote(plain_name(word))
        if len(lines[-1]) + 1 + len(quoted) + 2 > columns():
            lines[-1] += " \\"
            lines.append(f"{indent}  {quoted}")
        else:
            lines[-1] += f" {quoted}"
    return lines


def spelled_options(options: Sequence[str]) -> list[str]:
    """Return NVRTC options in the command line's form."""
    return [o if o.startswith(("-D", "-I")) else f"--option={o}" for o in options]


def error_text(text: str) -> str:
    """Return wrapped lines for a message behind ``error: ``, with commands unwrapped."""
    first, _, rest = text.partition("\n")
    lines = fitted(f"error: {first}").removeprefix("error: ")
    return f"{lines}\n{rest}" if rest else lines


def listing(
    file: str, launches: Sequence[HostLaunch], others: Sequence[tuple[str, int, str]],
    kernels: Sequence[str], options: Sequence[str],
) -> str:  # fmt: skip
    """Return the message if a command names no launch; ``others``: unsupported launches."""
    head = f"--grid is missing: its kernel, --grid and --block have to be written for {file}"
    if launches:
        head = f"which launch of {file}? Choose one with --launch N, or write --grid and --block"
    return "\n".join([error_text(head), *overview(file, launches, others, kernels, options)])


def overview(
    file: str, launches: Sequence[HostLaunch], others: Sequence[tuple[str, int, str]],
    kernels: Sequence[str], options: Sequence[str],
) -> list[str]:  # fmt: skip
    """Return a file's kernels, and its launches as commands."""
    lines = [fitted(f"kernels: {', '.join(kernels) or 'none found'}")]
    if launches or others:
        lines.append(fitted(f"launches in its host code{_how_to_complete(launches, file)}:"))
    for number, launch in enumerate(launches, 1):
        about = [place(launch.file, launch.line), launch.called, plain_name(launch.bound)]
        lines.append(fitted(f"  {number}  {', '.join(filter(None, about))}"))
        lines += command([*launch.words(file), *spelled_options(options)], "     ")
        if launch.lacking:
            example = shlex.quote(plain_name(launch.example)) if launch.example else "a name"
            lines.append(fitted(f"     kernel: {launch.lacking}; write it, as in {example}"))
    return lines + [
        fitted(f"  not read: {place(at, line)}, {called}") for at, line, called in others
    ]


def _how_to_complete(launches: Sequence[HostLaunch], file: str) -> str:
    """Return how to give what the text of launches does not say; empty if it says all."""
    lacking = {word for one in launches for word in one.words(file) if "?" in word}
    return " (--launch N asks for what stands as ?)" if lacking else ""


def place(file: str, line: int) -> str:
    """Return ``line 8``, of the file itself or of a header."""
    return f"{plain_name(file)} line {line}" if file else f"line {line}"


def wanted(
    launch: HostLaunch, missing: Collection[str], arguments: Sequence[int],
    sources: Mapping[str, str],
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Return the unknown parts of a launch, a line each, and example words for them.

    ``missing``: options, and ``kernel``. ``arguments``: numbers of unknown arguments.
    """
    rows, words = list[tuple[str, str, str]](), list[str]()
    if "kernel" in missing:
        rows.append(("kernel", launch.lacking, launch.example or "name"))
        words.append(launch.example or "name")
    for option, (what, example) in _SHAPES.items():
        if option in missing:
            rows.append((option, what, example))
            words += [option, example]
    sizes = _sizes(launch, arguments, sources)
    for number in arguments:
        kind, name = launch.params[number] if launch.params else ("", "")
        example = _example(kind, sources, *sizes)
        rows.append((name or f"argument {number + 1}", kind, example))
        words.append(example)
    width = min(_MAX_LINES, max((len(name) for name, *_ in rows), default=0))
    lines = []
    for name, what, example in rows:
        about = f"{what}, " if what else ""
        line = f"{name:<{width}}  {about}as in {shlex.quote(example)}"
        lines.append(fitted(f"  {plain_name(line)}"))
    return lines, words


def _sizes(
    launch: HostLaunch, unknown: Collection[int], sources: Mapping[str, str]
) -> tuple[int, int]:
    """Return elements of unknown arrays, and a number, that fit what is known of a launch.

    Arrays are as large as its largest known one, and have an element for each thread. A single
    unknown whole number is taken for their length, or for the side of a square.
    """
    known = [arg for arg in launch.args if arg is not None]
    elements_of = [spelled(kind, sources).rstrip("*") for kind, _ in launch.params]
    arrays = [
        math.prod(map(int, found[1].split(","))) // vector_of(element)[1]
        for arg, element in itertools.zip_longest(launch.args, elements_of, fillvalue="")
        if arg is not None and (found := re.match(r"\w+\[([\d,]+)\]", arg))
    ]
    numbers = [int(arg) for arg in known if arg.isdecimal()]
    grid = launch.grid or (int(_SHAPES["--grid"][1]),)
    threads = math.prod(grid) * math.prod(launch.block) if launch.block else 0
    elements = max([threads, *arrays, *numbers], default=0)
    kinds = [spelled(launch.params[n][0], sources) for n in unknown if launch.params]
    if not elements or sum(element_word(kind)[:1] in ("i", "u") for kind in kinds) != 1:
        return elements or _ELEMENTS, _NUMBER
    has_array = any(kind.endswith("*") for kind in kinds)
    length = elements if has_array else max(arrays, default=elements)
    is_plane = any(len(shape or ()) > 1 for shape in (launch.grid, launch.block))
    return elements, math.isqrt(length) if is_plane else length


def _example(kind: str, sources: Mapping[str, str], elements: int, number: int) -> str:
    """Return an example word for a parameter's type."""
    handle = HANDLES.get(kind.removeprefix("const").strip())
    plain = spelled(kind, sources)
    scalar, lanes = vector_of(plain.rstrip("*"))
    element = element_word(scalar)
    if handle:
        return handle
    if plain.endswith("*") or not plain:
        layout = None if element or not scalar else layout_of(scalar, sources)
        return f"{element or 'u8'}[{elements * (layout.nbytes if layout else lanes)}]"
    if plain == "bool":
        return "1"
    value = "1.5" if element.startswith("f") else str(number)
    return vector_word([value] * lanes) if element else "struct(64)"


def vector_word(values: Sequence[str]) -> str:
    """Return the word of a CUDA vector, or of the number that it is if it has one element."""
    return f"struct({','.join(values)})" if len(values) > 1 else values[0]

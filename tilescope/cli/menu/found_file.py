"""``tilescope FILE``: what a file holds, and what to type."""

import ast
from collections.abc import Sequence
from pathlib import Path

from kernels import Kernel, KernelError
from kernels.source_access import plain_name, source_text

from ...programs.executable import ProgramRefusedError, check, executable, is_elf
from ...text.launches import command, overview
from ...text.layout import columns, fitted
from ..host_program import has_main, is_cuda, launches_of
from ..kernel_names import names
from ..proposal import declared, proposed

_FRONT_ENDS = {
    "numba": "numba.cuda", "triton": "Triton", "torch": "PyTorch", "cuda": "CUDA Python",
    "tilelang": "TileLang", "cupy": "CuPy", "pycuda": "PyCUDA", "jax": "JAX",
}  # fmt: skip
_MAX_KERNELS = 12
_Command = tuple[str, list[str], str]
"""A command, its words, and a remark."""


def described(file: str) -> str:
    """Return what a file holds, and commands for it.

    Raises:
        KernelError: It is CUDA C++ or PTX that cannot be read.
    """
    path = Path(file)
    if is_cuda(file):
        lines = _cuda(file)
    elif path.suffix == ".ptx":
        lines = _ptx(file)
    elif path.suffix == ".py":
        lines = _python(path)
    elif path.suffix == ".toml":
        rows = [(name, [file], "") for name in ("check", "run", "view")]
        lines = ["a list of launches", *_typed(*rows)]
    elif is_elf(path):
        lines = _program(path)
    else:
        lines = ["no CUDA C++ (.cu), PTX (.ptx), Python script (.py) or program of this machine"]
    return "\n".join([fitted(f"{plain_name(file)}: {lines[0]}"), *lines[1:]])


def signature_lines(file: str, options: Sequence[str] = ()) -> list[str]:
    """Return the kernels of a CUDA C++ file, a line each, with their parameters."""
    lines = []
    for one in declared(file, options):
        written = one.written or tuple(f"{kind} {name}".strip() for kind, name in one.params)
        template = ", ".join(f"{p.kind or 'typename'} {p.name}" for p in one.parameters)
        head = f"{one.full}<{template}>" if one.template else one.full
        lines.append(fitted(f"  {plain_name(head)}({plain_name(', '.join(written))})"))
    return lines


def _cuda(file: str) -> list[str]:
    launches, others = launches_of(file, ())
    kernels, count = signature_lines(file), len(launches) + len(others)
    head = f"CUDA C++ with {_number(len(kernels), 'kernel')}"
    head += f", and {_number(count, 'launch', 'es')} in its host code" if count else ""
    lines = [head, *kernels[:_MAX_KERNELS]]
    if len(kernels) > _MAX_KERNELS:
        lines.append(f"  ... and {len(kernels) - _MAX_KERNELS} more: tilescope list {file}")
    if count:
        lines += overview(file, launches, others, [], ())[1:]
    known = [n for n, launch in enumerate(launches, 1) if launch.known]
    rows = list[_Command]()
    if known:
        rows.append(("check", [file], "the launches that the host code says in full"))
        rows += [(name, [file, "--launch", str(known[0])], "") for name in ("view", "predict")]
    elif launches:
        rows.append(("check", [file, "--launch", "1"], "says what to add to it"))
    elif kernels and not count:
        one = proposed(file, declared(file)[0])
        lines.append(
            fitted(f"a launch of the first, proposed from its text; {plain_name(one.remark())}")
        )
        rows += [(name, one.words, "") for name in ("check", "view", "predict")]
    if has_main(source_text(Path(file))):
        rows.append(("exec", [file], "the whole program, compiled by nvcc"))
    return lines + _typed(*rows)


def _ptx(file: str) -> list[str]:
    entries = names(file)
    lines = [f"PTX with {_number(len(entries), 'kernel')}"]
    for entry in entries[:_MAX_KERNELS]:
        try:
            params = Kernel.from_ptx(Path(file), entry).params
            given = ", ".join(f"{p.type} {p.name}" for p in params)
        except KernelError as error:
            given = str(error)
        lines.append(fitted(f"  {plain_name(entry)}({plain_name(given)})"))
    words = [file, entries[0], "--grid", "?", "--block", "?", "?"]
    rows = [(name, words, "") for name in ("check", "run", "view")]
    return [*lines, *_typed(*rows), "each ? is yours: tilescope help run"]


def _python(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        return [f"no Python: {error}"]
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            named = [module or ""] if module else [alias.name for alias in node.names]
            found |= dict.fromkeys(name.split(".")[0] for name in named)
    used = [_FRONT_ENDS[name] for name in found if name in _FRONT_ENDS]
    how = f"which imports {', '.join(used)}" if used else "which imports no CUDA front end itself"
    return [f"a Python script {how}", *_typed(("exec", [str(path)], "runs it without a GPU"))]


def _program(path: Path) -> list[str]:
    file = str(path) if "/" in str(path) else f"./{path}"
    lines = ["a program of this machine"]
    try:
        program = executable(path)
        lines[0] += "" if program.has_device_code else ", without device code of its own"
        check(program)
    except ProgramRefusedError as error:
        return [*lines, fitted(f"  exec cannot run it: {error}")]
    return [*lines, *_typed(("exec", [file], "its kernels run on the simulator"))]


def _typed(*rows: _Command) -> list[str]:
    """Return command lines for copying, with remarks as the shell has them."""
    lines = ["to type:"] if rows else []
    for name, words, remark in rows:
        typed = command(words, "  ", name)
        remark = f"  # {remark}" if remark else ""
        lines += [*typed[:-1], typed[-1] + remark * (len(typed[-1] + remark) <= columns())]
    return lines


def _number(count: int, noun: str, plural: str = "s") -> str:
    return f"{count or 'no'} {noun}{plural * (count != 1)}"

"""Compile the shims with the user's C compiler, once for each content, into the cache.

There is one for each version of CUDA: a program takes the one whose name and symbol version it was
linked with.
"""

import atexit
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernels.compiler.nvrtc import cache_file

VERSIONS = (13, 12)
"""Of CUDA."""
_HERE = Path(__file__).parent
_REGISTERS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""Of the System V ABI of x86-64: a call's first six integer arguments."""


class ShimError(RuntimeError):
    """The shim cannot be built here; the message says what is needed."""


def exports() -> list[tuple[int, str]]:
    """The functions that ``libcudart`` exports, with the version; a frame's ``index`` is a place.

    The place is that in the list of all versions' functions, one behind the other.
    """
    return [
        (version, name)
        for version in VERSIONS
        for name in (_HERE / f"exports_{version}.txt").read_text().split()
    ]


def shims() -> list[Path]:
    """Return the compiled shims, by ``VERSIONS``, in one folder.

    Raises:
        ShimError: Another system than Linux on x86-64, or no C compiler.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise ShimError(
            f"programs run on Linux on x86-64; this is {platform.system()} on {platform.machine()}"
        )
    source, numbered = (_HERE / "shim.c").read_text(), list(enumerate(exports()))
    texts = {
        version: stubs([(number, name) for number, (of, name) in numbered if of == version])
        for version in VERSIONS
    }
    key = hashlib.sha256("".join((source, *texts.values())).encode()).hexdigest()[:16]
    cached = cache_file("shim")
    folder = cached.parent if cached else temporary_folder()
    libraries = [folder / f"shim-{key}" / f"libcudart.so.{version}" for version in VERSIONS]
    for version, library in zip(VERSIONS, libraries, strict=True):
        if not library.exists():
            _compile(texts[version], library, [_HERE / "shim.c"], [
                _is("IS_PUSH", "__cudaPushCallConfiguration", numbered),
                _is("IS_POP", "__cudaPopCallConfiguration", numbered),
            ])  # fmt: skip
    return libraries


def library_shim(soname: str, names: Sequence[str], first: int) -> Path:
    """A stand-in for another library, which passes its calls on to the shim of the runtime.

    Args:
        soname: The library's.
        names: Functions that it exports.
        first: The number of the first one in frames.

    Raises:
        ShimError: As for ``shims``.
    """
    text = stubs(list(enumerate(names, first)))
    key = hashlib.sha256((soname + text).encode()).hexdigest()[:16]
    cached = cache_file("shim")
    library = (cached.parent if cached else temporary_folder()) / f"shim-{key}" / soname
    if not library.exists():
        _compile(text, library, [])
    return library


@functools.cache
def temporary_folder() -> Path:
    """Return a folder that is removed when this process ends: there is no cache."""
    made = tempfile.TemporaryDirectory(prefix="tilescope-")
    atexit.register(made.cleanup)
    return Path(made.name)


def _is(macro: str, name: str, numbered: Sequence[tuple[int, tuple[int, str]]]) -> str:
    """Return the definition of a macro: whether a number is that of a function."""
    tests = [f"(i) == {number}" for number, (_, one) in numbered if one == name]
    return f"-D{macro}(i)=({' || '.join(tests)})"


def _compile(
    stubs: str, library: Path, sources: Sequence[Path], options: Sequence[str] = ()
) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise ShimError("a program needs a C compiler to run: install gcc (or set PATH to a cc)")
    library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        work = Path(folder)
        (work / "stubs.S").write_text(stubs)
        (work / "names.map").write_text(f"{library.name} {{ global: *; }};\n")
        command = [
            compiler, *options, "-shared", "-fPIC", "-O1", "-o", str(work / "made"),
            *map(str, sources),
            str(work / "stubs.S"), f"-Wl,-soname,{library.name}",
            f"-Wl,--version-script={work / 'names.map'}", "-lpthread", "-ldl",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ShimError(f"{compiler} cannot compile the shim:\n{done.stderr.strip()}")
        os.replace(work / "made", library)


def stubs(names: Sequence[tuple[int, str]]) -> str:
    """Assembler text: an entry a number and name, which stores registers (see ``shim.c``)."""
    lines = [".text", ".type common,@function", "common:"]
    lines += [" push %rbp", " mov %rsp,%rbp", " sub $160,%rsp"]
    lines += [f" mov %{name},{8 * i}(%rsp)" for i, name in enumerate(_REGISTERS)]
    lines += [f" movq %xmm{i},{48 + 8 * i}(%rsp)" for i in range(8)]
    lines += [" lea 16(%rbp),%r10", " mov %r10,112(%rsp)"]  # the seventh argument and further ones
    lines += [" mov 8(%rbp),%r10", " mov %r10,120(%rsp)", " mov %r11,128(%rsp)"]
    lines += [" mov %rsp,%rdi", " call tilescope_call@PLT", " leave", " ret"]
    for number, name in names:
        lines += [f".globl {name}", f".type {name},@function", f"{name}:", " endbr64"]
        lines += [f" mov ${number},%r11d", " jmp common", f".size {name},.-{name}"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])

"""CUDA C++ to PTX through NVRTC, with a cache on disk. Needs no GPU."""

import base64
import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import CompileError
from ..ptx import header as ptx_header
from ..source.entry_names import entry_named, expression
from ..source.signatures import qualified
from .headers import follow, named_folders
from .log import Message, errors
from .nvcc_macros import OPTIONS, as_nvcc, asks_for_host, with_own_names
from .precompiled import precompiling
from .process import CompilerCrash, MissingCompiler, ask
from .strip_host_code import Compiled, compile_device_part, looks_like_a_program
from .toolkit import OWN_HEADERS, toolkit_folders

BUILD_OPTIONS = {"device": ("-lineinfo",), "source": ("-G",)}
"""What each build adds to the command line: what the GPU runs, and the unoptimised source."""

INT128 = "--device-int128"
"""What NVRTC wants, and its error names, for the ``__int128`` that nvcc knows by itself."""

_ASKS_FOR_MORE = re.compile(
    r"cuda[A-Z_]|CUDA[A-Z]*_|tex|surf|Texture|Surface|<<<|-include"
    r"|(#|%:|\?\?=)(?![ \t]*(line|pragma|define|undef)\b)"
)
"""What a text may need that NVRTC leaves out by ``--minimal``, or finds out that it lacks.

A quarter of the time for a small text goes into declarations for textures and the runtime. (NVRTC
user guide, "Supported Compile Options".)
"""


def compile_cuda(
    source: str, name: str, entry: str, options: Sequence[str], directory: Path, cache: bool = True
) -> tuple[str, str, tuple[str, ...]]:
    """Compile CUDA C++ to PTX.

    Args:
        source: The CUDA C++ text.
        name: What NVRTC calls the file in messages and ``.file`` lines.
        entry: The kernel as C++ writes it, such as ``tiled<16>`` or ``k(float*)``; a plain name
            is looked up as it stands first, for ``extern "C"`` kernels.
        options: NVRTC options, all of them.
        directory: Where ``#include "..."`` looks first.
        cache: Whether to look the PTX up on disk, and to keep it there.

    Returns:
        The PTX text, the lowered (mangled) entry name, and what headers were not found, and left
        out, though they may matter.

    Raises:
        CompileError: NVRTC is missing, the source has an error, or the entry
            names nothing; the message is NVRTC's log.
    """
    cached = _cache_path(source, name, entry, options, directory) if cache else None
    stored = _stored(cached) if cached else None
    if stored:
        return stored
    compiler = functools.partial(_compile, [])
    (ptx, lowered), lost = _translate(compiler, source, name, entry, options, directory)
    if not entry_named(ptx, lowered):
        raise CompileError(f"{name} declares {entry}, but its body is elsewhere: give that file")
    if cached:
        store(cached, {"ptx": ptx, "entry": lowered, "lost": lost})
    return ptx, lowered, tuple(lost)


def cuda_machine_code(
    source: str, name: str, entry: str, options: Sequence[str], directory: Path
) -> bytes | None:
    """Compile CUDA C++ to machine code; ``None`` if NVRTC no longer makes it for that GPU.

    Args:
        source: The CUDA C++ text.
        name: What NVRTC calls the file.
        entry: The kernel, as in ``compile_cuda``.
        options: NVRTC options with a real architecture: ``-arch=sm_90``.
        directory: Where ``#include "..."`` looks first.

    Raises:
        CompileError: As ``compile_cuda``.
    """
    arch = next(option for option in options if option.startswith("-arch=sm_"))
    if int(arch.removeprefix("-arch=sm_").rstrip("af")) not in _asked("version")["archs"]:
        return None
    made: list[bytes] = []
    translate = functools.partial(
        _translate, functools.partial(_compile, made), source, name, entry, options, directory
    )
    try:
        translate()
    except CompileError as error:  # perhaps of another kernel, which is not for that GPU
        try:
            translate(alone=True)
        except CompileError:
            raise error from None
    return made[-1]


def _translate(
    compiler: Any, source: str, name: str, entry: str, options: Sequence[str], directory: Path,
    alone: bool = False,
) -> tuple[Compiled, list[str]]:  # fmt: skip
    """Return a file as it stands, or else the device's part of it, and the headers that this lacks.

    ``alone``: what the kernel needs.
    """
    lost: list[str] = []
    headers = follow(source, directory, options).texts.values()
    if "<" in entry or "(" in entry:
        entry = qualified(entry, [source, *headers])
    arguments = [*options, *(f"-I{path}" for path in include_folders(directory))]
    arguments += [*precompiling(source, directory, options), *OPTIONS]
    compile_text = functools.partial(compiler, name, arguments)
    program = looks_like_a_program(source) or any(map(asks_for_host, headers))
    found = [] if program or alone else compile_text(as_nvcc(source), entry)
    if isinstance(found, list):
        part = compile_text, source, name, entry, options, directory
        try:
            found, lost = compile_device_part(*part, alone)
        except CompileError as error:
            try:
                found = compile_text(as_nvcc(source), entry) if program else found
            except CompilerCrash:  # what the first one says of headers is to be read, too
                raise error from None
            if isinstance(found, list):
                raise
    return found, lost


def _asked(work: str, **task: Any) -> Any:
    """Return NVRTC's answer from the worker process."""
    try:
        return ask(work, **task)
    except MissingCompiler as error:
        raise CompileError(
            "NVRTC is not available here, so CUDA C++ cannot be compiled "
            f"({(str(error).splitlines() or [''])[0]}). Install the wheels cuda-python and "
            "nvidia-cuda-nvrtc==13.0.* (Linux and Windows), or give a .ptx file."
        ) from None


def _compile(
    made: list[bytes],
    name: str,
    arguments: Sequence[str],
    text: str,
    entry: str | None,
    further: Sequence[str] = (),
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Compiled | list[Message]:
    """Compile a text; gives the errors if it has any.

    ``made`` takes the machine code, where options ask for some. ``entry`` is the kernel whose name
    in the PTX is asked for, if any; ``headers``: texts by name, which go before those in folders.
    """
    arguments = [*arguments, *further]
    found: Compiled | list[Message] = []
    named = [option for option in arguments if not option.startswith("-I")]
    if not _ASKS_FOR_MORE.search("\n".join([text, *named])):
        found = _run(made, text, name, entry, [*arguments, "--minimal"], headers)
    if isinstance(found, list):
        found = _run(made, text, name, entry, arguments, headers)
    if isinstance(found, list) and any(INT128 in error.text for error in found):
        arguments.append(INT128)
        found = _run(made, text, name, entry, arguments, headers)
    if isinstance(found, list) and entry and all(error.of_a_name for error in found):
        # C++ knows several functions of that name, or it is the name that the PTX has.
        plainly = _run(made, text, name, None, arguments, headers)
        if not isinstance(plainly, list) and (lowered := entry_named(plainly[0], entry)):
            return plainly[0], lowered
    return found


def _run(
    made: list[bytes],
    source: str,
    name: str,
    entry: str | None,
    options: Sequence[str],
    headers: Mapping[str, str],
) -> Compiled | list[Message]:
    binary = any(option.startswith("-arch=sm_") for option in options)
    try:
        found = _asked(
            "nvrtc", source=source, name=name, entry=expression(entry) if entry else None,
            options=list(options), headers=dict(headers), binary=binary,
        )  # fmt: skip
    except CompilerCrash as error:
        build = next((o for o in options if o in ("-G", "-lineinfo")), "")
        raise CompilerCrash(
            f"{name}: NVRTC {nvrtc_version()} itself {error}, compiling"
            f" {repr(entry) if entry else 'it'} with {build}. That is a fault of the compiler's;"
            " other code in the kernel, or another release of nvidia-cuda-nvrtc, may avoid it"
        ) from None
    if "log" in found:
        log = with_own_names(found["log"])
        return errors(log) or [Message("", 0, None, log or found["status"])]
    if binary:
        made.append(base64.b64decode(found["binary"]))
    return found["ptx"], found["entry"]


def include_folders(directory: Path, options: Sequence[str] = ()) -> tuple[Path, ...]:
    """Return the include folders: of the source, of the options, CUDA's, and ours."""
    return (directory, *named_folders(options), *toolkit_folders(), OWN_HEADERS)


@functools.cache
def nvrtc_version() -> str:
    """Return the NVRTC release in use, such as ``13.0.88`` (or ``13.0`` if not from a wheel)."""
    try:
        return metadata.version("nvidia-cuda-nvrtc")
    except metadata.PackageNotFoundError:
        major, minor = _asked("version")["version"]
        return f"{major}.{minor}"


def _cache_path(
    source: str, name: str, entry: str, options: Sequence[str], directory: Path
) -> Path | None:
    """Return the cache path of this compilation's PTX; ``None``: the cache is off."""
    if cache_file() is None:
        return None
    parts = [os.path.abspath(name), entry, *options, source]
    # With the user's own headers, followed through their includes.
    return cache_file(*parts, *follow(source, directory, options).texts.values())


def cache_file(*parts: str) -> Path | None:
    """Return the cache path for some texts and this compiler; ``None``: the cache is off."""
    root = os.environ.get("TILESCOPE_CACHE", "")
    if root == "off":
        return None
    base = Path(root) if root else Path.home() / ".cache" / "tilescope"
    key = hashlib.sha256()
    for part in [nvrtc_version(), *parts]:
        key.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return base / f"{key.hexdigest()}.json"


_LARGEST = 1 << 28
"""Bytes of a cache file; PTX is smaller."""


def _stored(path: Path) -> tuple[str, str, tuple[str, ...]] | None:
    """Return a cached compilation; ``None`` for a damaged or foreign file.

    Its content is treated like any given PTX file, so that write access to the cache determines
    what is simulated, and nothing else.
    """
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        content = json.loads(path.read_text())
        ptx, entry, lost = content["ptx"], content["entry"], tuple(map(str, content["lost"]))
        known = any(found.name == entry for found in ptx_header.entries(ptx))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (ptx, entry, lost) if known else None


def store(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file, so that a reader never sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(".tmp", dir=path.parent)
    except OSError:
        return  # a read-only home folder: the next run compiles again
    try:
        with open(handle, "w") as file:
            json.dump(content, file)
        os.replace(name, path)
    except OSError:  # a full disk, likewise
        pass
    finally:
        Path(name).unlink(missing_ok=True)

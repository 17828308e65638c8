"""CUDA C++ to PTX through NVRTC, with a cache on disk. Needs no GPU."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from . import ptx_header
from .errors import CompileError
from .host_code import IMPLICIT, without_host_code
from .reading import plain
from .toolkit import OWN_HEADERS, toolkit_folders

BUILD_OPTIONS = {
    "device": ("-lineinfo",),
    "source": ("-G",),
}
"""What each build adds to the command line: what the GPU runs, and the unoptimised source."""

_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)


def compile_cuda(
    source: str,
    name: str,
    entry: str,
    options: Sequence[str],
    directory: Path,
    cache: bool = True,
) -> tuple[str, str]:
    """Compile CUDA C++ to PTX.

    Args:
        source: The CUDA C++ text.
        name: What NVRTC calls the file in messages and ``.file`` lines.
        entry: The kernel as C++ writes it, such as ``tiled<16>``; a plain name
            is looked up as it stands first, for ``extern "C"`` kernels.
        options: NVRTC options, all of them.
        directory: Where ``#include "..."`` looks first.
        cache: Whether to look the PTX up on disk, and to keep it there.

    Returns:
        The PTX text and the lowered (mangled) entry name.

    Raises:
        CompileError: NVRTC is missing, the source has an error, or the entry
            names nothing; the message is NVRTC's log.
    """
    nvrtc = _nvrtc()
    includes = [f"-I{path}" for path in include_folders(directory)]
    arguments = [*options, *includes]
    cached = _cache_path(source, name, entry, options, directory) if cache else None
    stored = _stored(cached) if cached else None
    if stored:
        return stored
    try:
        ptx, lowered = _compile(nvrtc, source, name, entry, arguments)
    except CompileError as error:
        ptx, lowered = _compile_device_part(nvrtc, source, name, entry, arguments, error)
    if cached:
        _store(cached, {"ptx": ptx, "entry": lowered})
    return ptx, lowered


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise CompileError(
            "NVRTC is not available here, so CUDA C++ cannot be compiled "
            f"({str(error).splitlines()[0]}). Install the wheels cuda-python and "
            "nvidia-cuda-nvrtc==13.0.* (Linux and Windows), or give a .ptx file."
        ) from None
    return nvrtc


def _compile(
    nvrtc: Any, source: str, name: str, entry: str, arguments: Sequence[str]
) -> tuple[str, str]:
    def call(function: Any, *args: Any) -> Any:
        status, *values = function(*args)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{function.__name__} failed: {status.name}")
        return values[0] if values else None

    def text(size: Any, read: Any) -> str:
        buffer = bytes(call(size, program))
        call(read, program, buffer)  # the binding writes into the object's memory
        return buffer.rstrip(b"\0").decode(errors="replace")

    program = call(nvrtc.nvrtcCreateProgram, source.encode(), name.encode(), 0, [], [])
    try:
        call(nvrtc.nvrtcAddNameExpression, program, entry.encode())
        encoded = [argument.encode() for argument in arguments]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
            raise CompileError(_explain(log or status.name, source, entry))
        lowered = call(nvrtc.nvrtcGetLoweredName, program, entry.encode()).decode()
        return text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX), lowered
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _compile_device_part(
    nvrtc: Any, source: str, name: str, entry: str, arguments: Sequence[str], error: CompileError
) -> tuple[str, str]:
    """Compile a file that NVRTC refused as it stands, without the host's part of it.

    Raises:
        CompileError: That does not help; the shorter of the two messages.
    """
    folders = [Path(argument[2:]) for argument in arguments if argument.startswith("-I")]
    # What is not marked and not cut out, such as a method, becomes device code.
    arguments = [*arguments, "-default-device", *(f"--pre-include={h}" for h in IMPLICIT)]
    unfit: set[str] = set()  # libraries, by their folder, that only a host compiler takes

    def exists(header: str) -> bool:
        library = header.split("/")[0]
        return library not in unfit and any((folder / header).is_file() for folder in folders)

    while True:
        device_part, missing = without_host_code(source, exists)
        try:
            return _compile(nvrtc, device_part, name, entry, arguments)
        except CompileError as second:
            library = _library_of(str(second), folders)
            if library and library not in unfit:
                unfit.add(library)
                continue
            if not missing and str(error).count("\n") <= str(second).count("\n"):
                raise error from None
            left_out = f"\n(left out, not for NVRTC: {', '.join(missing)})" if missing else ""
            raise CompileError(f"{second}{left_out}") from None


def _library_of(log: str, folders: Sequence[Path]) -> str:
    """The first folder below an include folder, of the header that an error is in."""
    found = re.search(r"^(.+?)\(\d+\): (?:catastrophic )?error", log, re.M)
    for folder in sorted(folders, key=lambda path: -len(str(path))):
        if found and Path(found[1]).is_relative_to(folder):
            parts = Path(found[1]).relative_to(folder).parts
            return parts[0] if len(parts) > 1 else ""
    return ""


def _explain(log: str, source: str, entry: str) -> str:
    """NVRTC's log; for an entry that names nothing, what there is instead."""
    if "NVRTC_NAME_EXPRESSION" in log or "__nv_name_map" in log or "name expression" in log:
        names = kernel_names(source)
        listed = ", ".join(names) if names else "none"
        return f"no kernel {entry!r} in this source; its __global__ functions: {listed}"
    kept: list[str] = []
    wanted = True
    for line in log.splitlines():
        said = re.match(r"\S.*\(\d+\): (catastrophic error|error|warning|remark)", line)
        if said or not line.startswith(" "):  # what follows belongs to the message
            closing = re.match(r"\d+ .*errors? detected|Remark:|Compilation terminated", line)
            wanted = not closing and not (said and said[1] in ("warning", "remark"))
        if wanted and line.strip():
            kept.append(line)
    return plain("\n".join(kept))


def kernel_names(source: str) -> list[str]:
    """The ``__global__`` functions a source declares, templates with ``<...>``."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
    pattern = re.compile(
        r"(template\s*<[^;{]*?>\s*)?(?:(?:extern\s+\"C\"|static|inline)\s*)*"
        r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(?:static\s+|inline\s+)*void\s+"
        r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\("
    )
    return list(dict.fromkeys(m[2] + ("<...>" if m[1] else "") for m in pattern.finditer(text)))


def parameter_names(sources: dict[str, str], entry: str) -> list[str]:
    """The names a kernel's parameters have in its CUDA source; empty where not found."""
    name = re.escape(re.sub(r"<.*", "", entry, flags=re.S).strip().split("::")[-1])
    for source in sources.values():
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
        found = re.search(rf"__global__[^;{{}}]*?\b{name}\s*\(([^)]*)\)", text)
        if found and found[1].strip():
            names = [re.findall(r"\w+", part.split("=")[0]) for part in found[1].split(",")]
            return [words[-1] if words else "" for words in names]
    return []


def include_folders(directory: Path, options: Sequence[str] = ()) -> tuple[Path, ...]:
    """Where a compilation finds its headers: the source's folder, the options', CUDA's, ours."""
    return (directory, *_named_folders(options), *toolkit_folders(), OWN_HEADERS)


def _named_folders(options: Sequence[str]) -> list[Path]:
    return [Path(option[2:]) for option in options if option.startswith("-I")]


@functools.cache
def nvrtc_version() -> str:
    """The NVRTC release in use, such as ``13.0.88`` (or ``13.0`` if not from a wheel)."""
    try:
        return metadata.version("nvidia-cuda-nvrtc")
    except metadata.PackageNotFoundError:
        _, major, minor = _nvrtc().nvrtcVersion()
        return f"{major}.{minor}"


def _cache_path(
    source: str, name: str, entry: str, options: Sequence[str], directory: Path
) -> Path | None:
    """Where the PTX of this very compilation is kept; ``None`` switches the cache off."""
    root = os.environ.get("TILESCOPE_CACHE", "")
    if root == "off":
        return None
    base = Path(root) if root else Path.home() / ".cache" / "tilescope"
    key = hashlib.sha256()
    parts = [nvrtc_version(), os.path.abspath(name), entry, *options, source]
    for part in [*parts, *included_files(source, directory, options).values()]:
        key.update(part.encode() + b"\0")
    return base / f"{key.hexdigest()}.json"


def included_files(source: str, directory: Path, options: Sequence[str]) -> dict[Path, str]:
    """The user's own headers with their texts, followed through their includes."""
    folders = [directory, *_named_folders(options)]
    found: dict[Path, str] = {}
    waiting = [(source, directory)]
    while waiting:
        text, here = waiting.pop()
        for name in _INCLUDE.findall(text):
            for folder in (here, *folders):
                try:
                    path = (folder / name).resolve()
                    if path in found or not path.is_file():
                        continue
                    found[path] = path.read_text(errors="replace")
                except (OSError, ValueError, RuntimeError):  # no name of a file, or unreadable
                    continue
                waiting.append((found[path], path.parent))
                break
    return found


def _stored(path: Path) -> tuple[str, str] | None:
    """The PTX and entry of a cache file; ``None`` for one that is torn, or is none of ours.

    What it holds is treated like any PTX file that is given: whoever writes the cache says
    what runs in the simulator, and no more than that.
    """
    try:
        if not path.is_file():
            return None
        content = json.loads(path.read_text())
        ptx, entry = content["ptx"], content["entry"]
        known = any(found.name == entry for found in ptx_header.entries(ptx))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (ptx, entry) if known else None


def _store(path: Path, content: dict[str, str]) -> None:
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

"""Compile a file that NVRTC does not take as it stands: without what belongs to the host."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import CompileError
from ..host import host_code
from ..source import preprocessor
from ..source.deprecated_names import hints
from ..source.signatures import find, kernel_names, parted
from . import math_overloads
from .headers import (
    IMPLICIT,
    OF_NVCC,
    Included,
    follow,
    is_hosts,
    left_of,
    named,
    no_folders,
    standard_library,
    substitutes,
)
from .log import Message
from .preprocessor_guards import left_out_with
from .process import CompilerCrash

_ROUNDS = 40
_LACKS_STD = re.compile(r"^.*(?<!cuda::)\bstd\b.*")
"""A first line that tells of the host's standard library."""
_REFERENCE = re.compile(r"(static\s+)?(texture|surface)\s*<")
_HOSTS_VALUE = re.compile(r'dynamic initialization is not|namespace "std" has no member')
"""Of a constant that code for the device cannot use, though a parameter may have its name."""
_MEMBER = re.compile(r'has no member "(\w+)"')
_WIDE = re.compile(r"\bu?int(64|max|ptr|_least64)_t\b")
_OBJECT = "cudaTextureObject_t or cudaSurfaceObject_t as a parameter"

Compiled = tuple[str, str]
"""PTX and the entry's name in it."""
Compile = Callable[[str, str | None, Sequence[str], dict[str, str]], Compiled | list[Message]]
"""Of a text: the kernel wanted, further options, headers by name; gives the errors otherwise."""


def looks_like_a_program(source: str) -> bool:
    """Whether a text surely has host code: its own, or that of ``<cuda.h>``."""
    return bool(re.search(r"<<\s*<|\bmain\s*\(|#\s*include\s*[<\"]cuda\.h[>\"]", source))


def compile_device_part(
    compile_text: Compile,
    source: str,
    name: str,
    entry: str,
    options: Sequence[str],
    directory: Path,
    alone: bool = False,
) -> tuple[Compiled, list[str]]:
    """Compile what is for the device; ``alone``: without what the kernel does not need.

    Returns:
        What came of it, and the headers that it asked for, did not get, and may have needed.

    Raises:
        CompileError: What NVRTC says of the user's device code.
    """
    included = follow(source, directory, options)
    texts = [source, *included.texts.values()]
    macros = preprocessor.Macros(texts, options, host_code.MARKS)
    by_path: dict[str, host_code.SourceFile] = {}

    def read(texts: dict[str, str]) -> host_code.RequiredNames:
        """Take files to pieces, and cut what is the host's."""
        made = [host_code.read(path, text, macros) for path, text in texts.items()]
        host_code.cut_host_code(made)
        by_path.update((file.path, file) for file in made)
        return host_code.needed_names([*by_path.values()], entry, macros)

    # Headers of other folders, a library's perhaps, are read once the compiler complains of them.
    headers = {str(path): text for path, text in included.texts.items()}
    beside = {
        str(path): headers[str(path)]
        for path in included.texts
        if path.is_relative_to(directory.resolve())
    }
    needed = read({name: source} | beside)
    main = by_path[name]
    if alone:
        for known in by_path.values():
            _cut_others(known, needed)
    stubs = substitutes(included)
    # What is not marked and not cut out, such as a method, becomes device code.
    further = ["-default-device", *(f"--pre-include={header}" for header in IMPLICIT)]
    mapped = probed = False
    promoted: set[str] = set()

    def attempt(text: str, wanted: str | None) -> Compiled | list[Message]:
        texts = {
            included.called[path]: f"#line 1 {json.dumps(str(path), ensure_ascii=False)}\n"
            + included.directed(
                by_path[str(path)].rest() if str(path) in by_path else whole, path.parent
            )
            + "\n" * whole.endswith("\\\n")  # a line that goes on at the end: nvcc takes it
            for path, whole in included.texts.items()
        }
        try:
            return compile_text(text, wanted, further, texts | stubs)
        except CompilerCrash as crash:  # perhaps for want of what these headers would have
            lacking = _lacking(left_out(), included)
            raise CompilerCrash("\n".join([*lacking, str(crash)])) from None

    def left_out() -> list[str]:
        return [header for header, text in stubs.items() if not text]

    def asked_for(headers: list[str]) -> list[str]:
        """Return the headers whose absence the compiler reports under the active conditions.

        Headers that the toolkit has count as well.
        """
        without = {h: stubs.pop(h) for h in headers if h not in included.toolkit}
        wanted: list[str] = []
        while without:
            try:
                result = attempt(included.directed(main.rest(), directory), entry)
            except CompilerCrash:  # it had what it needs with the stand-in
                break
            missing = {e.missing_header for e in result} if isinstance(result, list) else set()
            found = [header for header in without if header in missing]
            if not found:
                break
            stubs.update((header, without.pop(header)) for header in found)
            wanted += found
        stubs.update(without)
        return [header for header in headers if header in (*wanted, *included.toolkit)]

    def probe() -> bool:
        """Leave out the toolkit's headers that only a host compiler takes."""
        open_names = [header for header in included.toolkit if header not in stubs]
        unfit = [h for h in open_names if isinstance(attempt(f"#include <{h}>\n", None), list)]
        stubs.update({header: left_of(header) for header in unfit})
        return bool(unfit)

    errors: list[Message] = []
    blamed: dict[str, Message] = {}  # of the members that were cut: what was wrong with them
    with_long_long: list[Message] | None = None
    for _ in range(_ROUNDS):
        result = attempt(included.directed(main.rest(), directory), entry)
        if not isinstance(result, list):
            return result, asked_for(_perhaps_needed(left_out(), included))
        errors = result
        unread = {
            e.path: headers[e.path] for e in errors if e.path in headers.keys() - by_path.keys()
        }
        if unread:
            needed = read(unread)
            continue
        moved, gone = False, host_code.names_cut(by_path.values())
        lacking = any(header in stubs for header in (*included.missing, *included.toolkit))
        for error in errors:
            file = by_path.get(error.path)
            if error.missing_header:
                if file and error.missing_header not in stubs:
                    stubs[error.missing_header] = left_of(error.missing_header)
                    moved = True
            elif file:
                for piece in file.at(error.line, error.column):
                    hosts = piece.kind == "variable" and not piece.device and not piece.method
                    hosts = hosts and bool(_HOSTS_VALUE.search(error.text))
                    if not (hosts or host_code.may_go(piece, needed, gone, lacking)):
                        break
                    if file.cut(piece):
                        blamed |= dict.fromkeys(piece.names - blamed.keys(), error)
                        moved = True
                        break
        elsewhere = [e for e in errors if e.path not in by_path and not e.of_a_name]
        if not moved and elsewhere and not probed:
            probed = moved = True
            moved = probe()
        of_std = [e for e in errors if _LACKS_STD.search(e.text)]
        if not moved and not mapped and of_std:
            mapped = True
            library = standard_library([*OF_NVCC, *stubs, *included.toolkit])
            stubs |= library
            # What these files include, perhaps not where __CUDACC_RTC__ is defined.
            asked = {h for e in of_std if e.path in by_path for h in named(by_path[e.path].text)}
            asked.update(OF_NVCC)
            further += [f"--pre-include={header}" for header in library if header in asked]
            moved = bool(library)
        unclear = math_overloads.ambiguous(e.text for e in errors) - promoted
        if not moved and unclear:
            promoted |= unclear
            stubs[math_overloads.HEADER] = math_overloads.text(promoted)
            further += [f"--pre-include={math_overloads.HEADER}"] * (promoted == unclear)
            moved = True
        of_source = not all(error.of_a_name for error in errors)
        if not moved and of_source and with_long_long is None and any(map(_WIDE.search, texts)):
            with_long_long, moved = errors, True
            further.append("-DTILESCOPE_LONG_INT64")
        if not moved:
            break
    if with_long_long and len(with_long_long) <= len(errors):
        errors = with_long_long
    if all(error.of_a_name for error in errors):
        typed = parted(entry)[1] is not None
        listed = (
            ", ".join(dict.fromkeys(n for t in texts for n in kernel_names(t, typed))) or "none"
        )
        same = find({str(at): text for at, text in enumerate(texts)}, entry)
        example = same.example if same and same.parameters else ""
        advice = (
            "its arguments do not fit: they are" if "<" in entry else "write template arguments,"
        )
        written = f"; {advice} as in {example!r}" if example else ""
        if same and (not example or "<" in entry):
            written += next(filter(None, (left_out_with(t, same.name) for t in texts)), "")
        message = f"no kernel {entry!r} in this source; its __global__ functions: {listed}{written}"
        lacks = [] if same else _lacking(_perhaps_needed(left_out(), included), included)
    else:
        message = _render([_cause(e, blamed) for e in errors], by_path)
        for path, called in included.called.items():
            message = message.replace(called, path.name)
        lacks = _lacking(asked_for(left_out()), included)
    raise CompileError("\n".join([message, *lacks, *(f"({text})" for text in no_folders(options))]))


def _cut_others(file: host_code.SourceFile, needed: host_code.RequiredNames) -> None:
    """Cut functions that a kernel does not need: other kernels, their instances, and so on."""
    for piece in file.pieces:
        function = piece.kind in ("function", "prototype", "instance", "other")
        if piece.device and function and piece.names and not piece.names & needed.by_entry:
            file.cut(piece)


def _cause(error: Message, blamed: Mapping[str, Message]) -> Message:
    """Return the error of a member's declaration behind an error about its absence."""
    missed = _MEMBER.search(error.text)
    return blamed.get(missed[1], error) if missed else error


def _render(errors: list[Message], files: dict[str, host_code.SourceFile]) -> str:
    """Return the errors in the user's files, if there are any."""
    about = [e for e in errors if not e.of_a_name]
    own = [e for e in about if e.path in files or not e.path]
    text = "\n".join(dict.fromkeys(e.text for e in own or about))
    cut = {
        name: _REFERENCE.match(file.text, piece.start)
        for file in files.values()
        for piece in file.cuts
        for name in piece.names
    }
    for name in dict.fromkeys(re.findall(r'identifier "(\w+)" is undefined', text)):
        if cut.get(name):
            text += f"\n({name} is a reference, as CUDA 11 had them: take a {_OBJECT})"
        elif name in cut:
            text += f"\n({name} is the host's: it is not marked __device__)"
    return "\n".join([text, *(f"({hint})" for hint in hints(text))])


def _perhaps_needed(left_out: list[str], included: Included) -> list[str]:
    """Headers that are not there, and that the kernel may need for all that is known of them."""
    return [
        header for header in left_out
        if header not in included.toolkit and not is_hosts(header, header in included.quoted)
    ]  # fmt: skip


def _lacking(left_out: list[str], included: Included) -> list[str]:
    """Return sentences about omitted headers."""
    missing = []
    random = [header for header in left_out if header.startswith("curand_")]
    own_headers = [h for h in _perhaps_needed(left_out, included) if h not in random]
    others = [header for header in left_out if header not in (*own_headers, *random)]
    if others:
        missing.append(f"(left out, not for NVRTC: {', '.join(others)})")
    if random:
        missing.append(f"(not found: {', '.join(random)}; the wheel nvidia-curand has them)")
    if own_headers:
        missing.append(f"(not found: {', '.join(own_headers)}; -I FOLDER says where to look)")
    return missing

"""``Kernel``: a PTX text, the entry to launch, and the parameters it takes."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .arguments.adapter import Adapter, Made
from .compiler.headers import follow, no_folders
from .compiler.nvrtc import BUILD_OPTIONS, compile_cuda, include_folders
from .errors import KernelError
from .machine_code.architecture import virtual
from .ptx import header as ptx_header
from .source.element_types import declared_types, pointed_to
from .source.mangling import demangle
from .source.signatures import parameter_names
from .source_access import read_below, source_text


@dataclass(frozen=True)
class Kernel:
    """One kernel, as both the simulator and the device get it.

    Attributes:
        ptx: The PTX text; the very bytes that are executed.
        entry: The entry's (mangled) name in the PTX.
        params: The entry's parameters, in order.
        name: The entry as the user wrote it, for reports.
        build: ``device``, ``source``, or ``ptx`` if it came as PTX.
        sources: CUDA sources by the path that the PTX's ``.file`` lines give.
        folders: Files that the PTX names are read from below these, and from nowhere else.
        origin: How to compile it again in another build, if it came from CUDA C++.
        adapter: What a front end's arguments are to the parameters.
        dynamic_bytes: Dynamic shared memory that it needs, where its compiler says so.
        notes: What a report has to say of how it was made, a sentence each.
        module: A number of the module that it was loaded with, where a program loads some.
    """

    ptx: str = field(repr=False)
    entry: str
    params: tuple[ptx_header.Param, ...]
    name: str
    build: str = "ptx"
    sources: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)
    origin: Origin | None = field(default=None, repr=False, compare=False)
    adapter: Adapter | None = field(default=None, repr=False, compare=False)
    dynamic_bytes: int = 0
    notes: tuple[str, ...] = field(default=(), compare=False)
    module: int | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the PTX text's bytes, in hex."""
        return hashlib.sha256(self.ptx.encode("utf-8", "surrogatepass")).hexdigest()

    @functools.cached_property
    def declarations(self) -> Mapping[str, str]:
        """Where types and parameters are declared: ``sources``, then the headers they include.

        The user's own headers, that is, as they are now.
        """
        if self.origin is None or not self.folders:
            return self.sources
        found = dict(self.sources)
        for text in self.sources.values():
            headers = follow(text, self.folders[0], self.origin.options).texts
            for path, content in headers.items():
                found.setdefault(str(path), content)
        return found

    @functools.cached_property
    def parameter_types(self) -> tuple[str, ...]:
        """The type of each parameter in C++, ``""`` where it is not known.

        The entry's name in the PTX, if it is mangled, says all there is to know; the declarations
        are asked for a kernel that is ``extern "C"``.
        """
        symbol = demangle(self.entry)
        kinds = symbol.params if symbol else declared_types(self.declarations, self.name)
        return tuple(kinds) if len(kinds) == len(self.params) else ("",) * len(self.params)

    @property
    def element_types(self) -> list[str]:
        """The type that each parameter points to, ``""`` where it is no pointer or not known."""
        return pointed_to(self.parameter_types)

    @functools.cached_property
    def scratch(self) -> str:
        """The shared array that is Triton's own in a kernel of Triton's; ``""`` in others.

        One of CUDA C++ may have an array of that name as well.
        """
        by_triton = self.adapter is not None and self.adapter.repeats
        return "global_smem" if by_triton or '.py"' in self.ptx else ""

    def source_text(self, file: str) -> str | None:
        """The text of a file that the PTX names; ``None`` if it is not at hand, or not ours."""
        text = self.sources.get(file)
        return read_below(file, self.folders) if text is None else text

    @classmethod
    def from_cuda(
        cls,
        source: str | os.PathLike[str],
        entry: str,
        arch: str | int = "compute_90",
        options: Sequence[str] = (),
        build: str = "device",
        cache: bool = True,
    ) -> Kernel:
        """Compile CUDA C++ with NVRTC.

        Args:
            source: Path of a ``.cu`` file, or CUDA C++ text (anything with a line break
                or a brace in it that is no file's name).
            entry: The kernel as C++ writes it: ``tiled<16>``, ``ns::kernel``; of overloads with
                the types of its parameters, ``kernel(float*, int)``.
            arch: Whose: ``90``, ``"90a"``, ``"sm_90a"`` or ``"compute_90a"``; only PTX is made.
            options: Further NVRTC options, such as ``-DTILE=16`` or ``--use_fast_math``.
            build: ``device`` is what a GPU would run; ``source`` is unoptimised (``-G``).
            cache: Whether to look the PTX up on disk, and to keep it there.

        Raises:
            FileNotFoundError: No such file.
            KernelError: An unknown build, or NVRTC's log (``CompileError``).
            ValueError: An unknown architecture; ``TypeError``: ``options`` is one text.
        """
        if build not in BUILD_OPTIONS:
            raise KernelError(f"unknown build {build!r}; there are: {', '.join(BUILD_OPTIONS)}")
        if isinstance(options, str):
            raise TypeError(f"options is a sequence of options, as in [{options!r}]")
        origin = Origin(str(source), entry, virtual(arch), tuple(options))
        text, name, directory = origin.read()
        ptx, lowered, lost = compile_cuda(text, name, entry, origin.flags(build), directory, cache)
        left_out = f"not found, left out: {', '.join(lost)}; -I FOLDER says where to look"
        return dataclasses.replace(
            cls.from_ptx(ptx, lowered),
            name=entry,
            build=build,
            sources={os.path.abspath(name): text},
            folders=include_folders(directory, options),
            origin=origin,
            notes=(*no_folders(options), *[left_out] * bool(lost)),
        )

    @classmethod
    def from_ptx(cls, source: str | bytes | os.PathLike[str], entry: str | None = None) -> Kernel:
        """Take PTX as any compiler wrote it.

        Args:
            source: Path of a ``.ptx`` file, or PTX text (bytes are text, as NVRTC gives it).
            entry: The entry's name; may be left out where there is only one.

        Raises:
            FileNotFoundError: No such file.
            KernelError: No such entry, or not PTX.
        """
        named = source.decode(errors="replace") if isinstance(source, bytes) else str(source)
        text, path = _read(named, (".ptx",))
        text = text.rstrip("\0")  # the end of a text of C's, which Warp writes, too
        try:
            found = {entry.name: entry for entry in ptx_header.entries(text)}
        except ValueError as error:
            raise KernelError(str(error)) from None
        if not found:
            where = f"{path}: " if path else ""
            raise KernelError(f"{where}no .entry in this text; is it PTX?")
        if entry is None and len(found) == 1:
            entry = next(iter(found))
        if entry not in found:
            wanted = f"no entry {entry!r};" if entry else "which entry?"
            raise KernelError(f"{wanted} there are: {', '.join(found)}")
        folders = (path.parent.resolve(),) if path else ()
        return cls(text, entry, found[entry].params, entry, folders=folders)

    @classmethod
    def from_numba(
        cls, function: Any, signature: Any, arch: str | int = "compute_90", **options: Any
    ) -> Kernel:
        """Compile a Python function with Numba (the extra ``numba``), without a GPU.

        Args:
            function: A function, or what ``@cuda.jit`` made of it.
            signature: Types of its arguments, as ``cuda.jit`` takes them: ``"void(f4[:], i4)"``.
            arch: As ``from_cuda`` takes it.
            options: Further options of ``cuda.compile_ptx``, such as ``fastmath=True``.

        Raises:
            KernelError: Numba is not installed, or refuses the function.
        """
        from .front_ends.numba_cuda import compiled

        return cls.from_front_end(compiled(function, signature, arch, options))

    @classmethod
    def from_triton(
        cls,
        function: Any,
        signature: Mapping[str, str],
        constants: Mapping[str, Any] | None = None,
        num_warps: int = 4,
        num_stages: int = 3,
        arch: str | int = "compute_90",
        divisible: Collection[str] | None = None,
        **options: Any,
    ) -> Kernel:
        """Compile a Triton function (the extra ``triton``), without a GPU.

        Launch it with ``32 * num_warps`` threads a block, and with the arguments that are no
        constants, in order.

        Args:
            function: What ``@triton.jit`` made.
            signature: The type of each argument that is no constant: ``{"x": "*fp32"}``.
            constants: Values of its ``tl.constexpr`` arguments.
            num_warps: Warps of a block.
            num_stages: Stages of the pipelines of its loops.
            arch: As ``from_cuda`` takes it.
            divisible: Arguments that are multiples of 16 (of 16 bytes); by default all pointers,
                as Triton finds them where whole arrays are passed.
            options: Further options of Triton's compiler.

        Raises:
            KernelError: Triton is not installed, or refuses the function.
        """
        from .front_ends.triton_jit import compiled

        options |= {"num_warps": num_warps, "num_stages": num_stages}
        return cls.from_front_end(
            compiled(function, signature, constants or {}, arch, divisible, options)
        )

    @classmethod
    def from_front_end(cls, made: Made) -> Kernel:
        """Take what a front end's compiler made.

        Raises:
            KernelError: Not PTX.
        """
        path = made.path
        return dataclasses.replace(
            cls.from_ptx(made.text), name=made.name, adapter=made.adapter,
            sources={str(path): path.read_text(errors="replace")} if path else {},
            folders=(path.parent,) if path else (), dynamic_bytes=made.dynamic_bytes,
        )  # fmt: skip

    def labels(self) -> list[str]:
        """What to call each parameter in reports; empty where nothing says."""
        return list(self.adapter.names if self.adapter else self._named)

    @functools.cached_property
    def _named(self) -> list[str]:
        symbol = demangle(self.entry)
        named = (symbol.name, symbol.params) if symbol else (self.name,)
        return parameter_names(self.sources, *named) or parameter_names(self.declarations, *named)

    def rebuild(self, build: str) -> Kernel:
        """The same kernel in another build; needs CUDA C++ to start from.

        Raises:
            KernelError: The kernel came as PTX.
        """
        if self.origin is None:
            raise KernelError(f"{self.name} came as PTX: there is no source to build again")
        o = self.origin
        return Kernel.from_cuda(o.source, o.entry, o.arch, o.options, build)


@dataclass(frozen=True)
class Origin:
    """What ``Kernel.from_cuda`` was called with."""

    source: str
    entry: str
    arch: str
    options: tuple[str, ...]

    def read(self) -> tuple[str, str, Path]:
        """The source's text, what the compiler calls it, and where its own headers are."""
        text, path = _read(self.source, (".cu", ".cuh", ".cpp"))
        if "\0" in text:
            raise KernelError(f"{path or 'the source'} is no CUDA C++ as text (UTF-8): NUL bytes")
        name = str(path or "kernel.cu")
        name = f"./{name}" if name.startswith("-") else name  # NVRTC takes that for an option
        return text, name, path.parent.resolve() if path else Path.cwd()

    def flags(self, build: str, arch: str = "") -> list[str]:
        """NVRTC's options for a build; ``arch``: another architecture."""
        return [f"-arch={arch or self.arch}", *BUILD_OPTIONS[build], *self.options]


def is_text(source: str) -> bool:
    """Whether a source is the text itself and not a path."""
    return ("\n" in source or "{" in source) and not os.path.isfile(source)


def _read(source: str, suffixes: tuple[str, ...]) -> tuple[str, Path | None]:
    """The text and, if ``source`` is a path, the path."""
    if is_text(source):
        return source, None
    path = Path(source)
    if not path.exists() and path.suffix not in suffixes:
        raise FileNotFoundError(f"no file {source!r} (expected a {suffixes[0]} file or its text)")
    return source_text(path), path

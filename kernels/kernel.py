"""``Kernel``: PTX text, the entry to launch, and its parameters."""

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
    """One kernel, in the form that simulator and device share.

    Attributes:
        ptx: The PTX text; exactly these bytes are executed.
        entry: The entry's (mangled) name in the PTX.
        params: The entry's parameters, in order.
        name: The entry as the user wrote it, for reports.
        build: ``device``, ``source``, or ``ptx`` for a kernel given as PTX.
        sources: CUDA sources, by the path in the PTX's ``.file`` directives.
        folders: Folders below which files named in the PTX may be read; no others are.
        origin: How to compile the kernel again in another build, if it came from CUDA C++.
        adapter: Converts a front end's arguments to the parameters.
        dynamic_bytes: Dynamic shared memory that it needs, if its compiler reports it.
        notes: Remarks for reports on how the kernel was made, a sentence each.
        module: Number of its loaded module, in programs that load several.
        binaries: Cubins that the program has of its module, by compute capability (``90``).
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
    binaries: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the PTX text's bytes, in hex."""
        return hashlib.sha256(self.ptx.encode("utf-8", "surrogatepass")).hexdigest()

    @functools.cached_property
    def declarations(self) -> Mapping[str, str]:
        """Files with declarations of types and parameters: ``sources``, then included user headers.

        Headers are read as they are now.
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
        """C++ type of each parameter; ``""`` if unknown.

        A mangled entry name contains the types; for ``extern "C"`` kernels the declarations are
        parsed. PTX written by hand may contradict them.
        """
        symbol = demangle(self.entry)
        kinds = symbol.params if symbol else declared_types(self.declarations, self.name)
        if len(kinds) != len(self.params):
            return ("",) * len(self.params)
        return tuple(
            kind if param.nbytes == 8 or not kind.endswith(("*", "&")) else ""
            for kind, param in zip(kinds, self.params, strict=True)
        )

    @property
    def element_types(self) -> list[str]:
        """C++ type that each parameter points to; ``""`` if it is no pointer, or unknown."""
        return pointed_to(self.parameter_types)

    @functools.cached_property
    def scratch(self) -> str:
        """Name of Triton's own shared array in a Triton kernel; ``""`` otherwise.

        A CUDA C++ kernel may also have an array of that name.
        """
        by_triton = self.adapter is not None and self.adapter.repeats
        return "global_smem" if by_triton or '.py"' in self.ptx else ""

    def source_text(self, file: str) -> str | None:
        """Return the text of a file named in the PTX.

        ``None`` if it is missing or outside ``folders``.
        """
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
            source: Path of a ``.cu`` file, or CUDA C++ text (a string with a line break or brace
                that is no file's name).
            entry: The kernel as in C++: ``tiled<16>``, ``ns::kernel``; for overloads with parameter
                types, ``kernel(float*, int)``.
            arch: Target architecture: ``90``, ``"90a"``, ``"sm_90a"`` or ``"compute_90a"``; the
                result is always PTX.
            options: Further NVRTC options, such as ``-DTILE=16`` or ``--use_fast_math``.
            build: ``device``: optimised, as a GPU would run it; ``source``: unoptimised (``-G``).
            cache: Whether to read and write the compilation cache on disk.

        Raises:
            FileNotFoundError: There is no such file.
            KernelError: The build is unknown, or NVRTC rejected the source (``CompileError``).
            ValueError: The architecture is unknown.
            TypeError: ``options`` is a single string.
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
        """Load PTX of any compiler.

        Args:
            source: Path of a ``.ptx`` file, or PTX text (``str`` or ``bytes``).
            entry: Name of the entry; optional if there is only one.

        Raises:
            FileNotFoundError: There is no such file.
            KernelError: There is no such entry, or the text is not PTX.
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
            function: A function, or the result of ``@cuda.jit``.
            signature: Argument types as for ``cuda.jit``, such as ``"void(f4[:], i4)"``.
            arch: As for ``from_cuda``.
            options: Further options of ``cuda.compile_ptx``, such as ``fastmath=True``.

        Raises:
            KernelError: Numba is not installed, or rejects the function.
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

        Launch the kernel with ``32 * num_warps`` threads per block and with the non-constant
        arguments, in order.

        Args:
            function: The result of ``@triton.jit``.
            signature: Type of each non-constant argument, such as ``{"x": "*fp32"}``.
            constants: Values of the ``tl.constexpr`` arguments.
            num_warps: Warps of a block.
            num_stages: Pipeline stages of its loops.
            arch: As for ``from_cuda``.
            divisible: Arguments that are multiples of 16 (addresses: of 16 bytes). Default: all
                pointers, as Triton assumes for whole arrays.
            options: Further options of Triton's compiler.

        Raises:
            KernelError: Triton is not installed, or rejects the function.
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
        """Return the name of each parameter for reports; empty if unknown."""
        return list(self.adapter.names if self.adapter else self._named)

    @functools.cached_property
    def _named(self) -> list[str]:
        symbol = demangle(self.entry)
        named = (symbol.name, symbol.params) if symbol else (self.name,)
        return parameter_names(self.sources, *named) or parameter_names(self.declarations, *named)

    def rebuild(self, build: str) -> Kernel:
        """Return the kernel in another build, from its CUDA C++ source.

        Raises:
            KernelError: The kernel came as PTX.
        """
        if self.origin is None:
            raise KernelError(f"{self.name} came as PTX: there is no source to build again")
        o = self.origin
        return Kernel.from_cuda(o.source, o.entry, o.arch, o.options, build)


@dataclass(frozen=True)
class Origin:
    """Arguments of ``Kernel.from_cuda``."""

    source: str
    entry: str
    arch: str
    options: tuple[str, ...]

    def read(self) -> tuple[str, str, Path]:
        """Return the source's text, what the compiler calls it, and where its own headers are."""
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
    """Return the text and, if ``source`` is a path, the path."""
    if is_text(source):
        return source, None
    path = Path(source)
    if not path.exists() and path.suffix not in suffixes:
        raise FileNotFoundError(f"no file {source!r} (expected a {suffixes[0]} file or its text)")
    return source_text(path), path

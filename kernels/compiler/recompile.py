"""A kernel compiled again from sources that were edited, without touching the files."""

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import KernelError
from ..kernel import Kernel, is_text
from .headers import follow, named_folders

Files = Mapping[Path, bytes]
"""Contents of source files by their real path."""


def user_files(kernel: Kernel) -> dict[Path, bytes]:
    """Return the file a kernel was compiled from, and the user's headers that it includes.

    Empty if the kernel came as PTX, or if its file has changed since it was compiled.
    """
    if kernel.origin is None:
        return {}
    main = main_file(kernel)
    text = kernel.sources.get(os.path.abspath(main), "")
    try:
        content = main.read_bytes() if _is_path(kernel) else text.encode()
        if _decoded(content) != _decoded(text.encode()):
            return {}
        headers = follow(text, main.parent, kernel.origin.options).texts
        return {main.resolve(): content} | {path: path.read_bytes() for path in headers}
    except OSError:
        return {}


def main_file(kernel: Kernel) -> Path:
    """Return the ``.cu`` file a kernel was compiled from; ``kernel.cu`` if that was a text."""
    assert kernel.origin is not None
    return Path(os.path.abspath(kernel.origin.source if _is_path(kernel) else "kernel.cu"))


def recompiled(kernel: Kernel, files: Files, build: str) -> Kernel:
    """Return the kernel from other contents of its files; ``.file`` lines name the real ones.

    The files are laid out as they are below a temporary folder, so that includes find each other as
    before. ``files`` are what ``user_files`` gave, some of it edited.

    Raises:
        KernelError: The compiler refuses it.
    """
    origin, main = kernel.origin, main_file(kernel).resolve()
    if origin is None or main not in files:
        raise KernelError(f"{kernel.name} has no source to compile again")
    root = os.path.commonpath([path.parent for path in files])
    with tempfile.TemporaryDirectory() as made_folder:
        top = os.path.realpath(made_folder)

        def moved(path: str | Path) -> Path:
            return Path(top, os.path.relpath(path, root))

        names = follow(_decoded(files[main]), main.parent, origin.options).names
        for path, content in files.items():
            moved(path).parent.mkdir(parents=True, exist_ok=True)
            moved(path).write_bytes(content)
            for name in names:  # what "sub/../x.h" goes through has to be there
                _make(path.parent, Path(name).parent, moved(path).parent, top)
        copies = [moved(os.path.realpath(folder)) for folder in named_folders(origin.options)]
        ahead = [copy for copy in (*copies, moved(main).parent) if copy.is_dir()]
        options = [*(f"-I{folder}" for folder in ahead), *origin.options, f"-I{main.parent}"]
        made = Kernel.from_cuda(
            moved(main), origin.entry, origin.arch, options, build, cache=False
        )  # fmt: skip
    ptx = made.ptx.replace(f'"{top}/', f'"{root.rstrip("/")}/')
    sources = {str(path): _decoded(content) for path, content in files.items()}
    return dataclasses.replace(made, ptx=ptx, name=kernel.name, sources=sources, origin=origin)


def _make(folder: Path, way: Path, copy: Path, top: str) -> None:
    """Make the folders of a relative way in a copy, as far as they are in the original."""
    for part in [*reversed(way.parents), way]:
        made = Path(os.path.normpath(copy / part))
        if (folder / part).is_dir() and made.is_relative_to(top):
            made.mkdir(parents=True, exist_ok=True)


def _is_path(kernel: Kernel) -> bool:
    assert kernel.origin is not None
    return not is_text(kernel.origin.source)


def _decoded(content: bytes) -> str:
    """Return a file's text as ``Kernel.from_cuda`` reads it."""
    text = content.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")

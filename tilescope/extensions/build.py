"""Compile an extension against PyTorch, the shim and the bridge, once for each content."""

import functools
import hashlib
import json
import os
import re
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.compiler.nvrtc import cache_file
from kernels.compiler.toolkit import toolkit_folders

from ..programs.compile import CompilationError, find_nvcc, wheel_folders
from ..programs.executable import FLAGS
from ..programs.libraries.shims import LIBRARIES, library_exports
from ..programs.shim.build import VERSIONS, ShimError, exports, stubs, temporary_folder

_HERE = Path(__file__).parent
BRIDGE = "tilescope_bridge"
"""Name of the bridge's Python module."""
_SUFFIXES = (".cu", ".cuh")
_ARCHITECTURE = re.compile(r"--?(arch|gencode|code|gpu-architecture|gpu-code|generate-code)(=.*)?")
_RELEASE = re.compile(r"release (\d+)\.")
_IDENTIFIER = re.compile(r"\b[a-z_][a-z0-9_]*\b")
OPERATORS = "tilescope_operators.h"
"""Header of the operators that a source names; the light ``ATen/ATen.h`` includes it."""
_NEEDS_AUTOGRAD = "requires_grad"
"""Word of sources for which ``at::empty`` and its like do not stand in for ``torch::empty``."""
_OTHER_IN_TORCH = {"tensor"}
"""Operators of ``at::`` that make tensors of another type than those of ``torch::``."""
_STOOD_IN = {f"-l{name[3:-3]}" for name in (*LIBRARIES, "libcudart.so")} | {"-lc10_cuda"}
"""Words for the linker that name what stand-ins are linked for."""


class BuildError(RuntimeError):
    """A compiler refuses a source; the message has what it said."""


def cache_folder() -> Path:
    """Return the folder of built extensions; a temporary one if the cache is off."""
    cached = cache_file("torch")
    return (cached.parent if cached else temporary_folder()) / "torch"


def digest(*parts: object) -> str:
    """Return a name for contents."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True)
class Toolchain:
    """Compilers, headers and libraries of extensions.

    Attributes:
        nvcc, version: The compiler of CUDA, and its major version.
        torch: PyTorch's folder; ``is_new_abi``: whether it has the strings of C++11.
        key: Digest of all of it.
    """

    nvcc: Path
    version: int
    torch: Path
    is_new_abi: bool
    key: str

    @property
    def common(self) -> list[str]:
        """Words for both compilers."""
        torch, python = self.torch / "include", sysconfig.get_path("include")
        system = [torch, torch / "torch" / "csrc" / "api" / "include", python]
        return [
            "-DTORCH_API_INCLUDE_EXTENSION_H", f"-D_GLIBCXX_USE_CXX11_ABI={int(self.is_new_abi)}",
            *(word for folder in system for word in ("-isystem", str(folder))),
        ]  # fmt: skip

    @property
    def headers(self) -> list[str]:
        """Folders of the toolkit's headers, for the host's compiler, behind its own ones."""
        folders = [*toolkit_folders(), *wheel_folders("include"), _HERE / "include"]
        return [word for folder in folders for word in ("-idirafter", str(folder))]


@functools.cache
def toolchain() -> Toolchain:
    """Return what there is.

    Raises:
        CompilationError: There is no nvcc, or one of another version.
        ShimError: There is no C++ compiler.
    """
    import torch

    nvcc = find_nvcc()
    said = _run([str(nvcc), "--version"])
    release = _RELEASE.search(said)
    version = int(release[1]) if release else 0
    if version not in VERSIONS:
        raise CompilationError(f"extensions take nvcc 13 or 12; {nvcc} is of CUDA {version}")
    try:
        compiler = _run(["g++", "--version"])
    except FileNotFoundError:
        raise ShimError("a PyTorch extension needs a C++ compiler: install g++") from None
    new_abi = bool(torch.compiled_with_cxx11_abi())
    key = digest(torch.__version__, new_abi, said, compiler, sysconfig.get_config_var("SOABI"),
                 stub_text(version), (_HERE / "bridge.cpp").read_text())  # fmt: skip
    return Toolchain(nvcc, version, Path(torch.__file__).parent, new_abi, key)


def stub_text(version: int) -> str:
    """Assembler text: the runtime's functions and those of its libraries, in one shared object."""
    first = len(exports())
    numbered = [(i, name) for i, (of, name) in enumerate(exports()) if of == version]
    numbered += [(i, name) for i, (_, name) in enumerate(library_exports(), first)]
    numbers = {name: i for i, name in reversed(numbered)}
    hidden = [f".hidden {name}" for name in numbers]
    return "\n".join([stubs([(i, name) for name, i in numbers.items()]), *hidden, ""])


def bridge() -> Path:
    """Return the compiled bridge.

    Raises:
        CompilationError, ShimError: As ``toolchain``.
        BuildError: It cannot be compiled against this PyTorch.
    """
    tools = toolchain()
    folder = cache_folder() / f"bridge-{tools.key}"
    made = folder / f"lib{BRIDGE}-{tools.key}.so"
    if not made.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            work = Path(name)
            (work / "stubs.S").write_text(stub_text(tools.version))
            _run(["gcc", "-c", "-o", str(work / "stubs.o"), str(work / "stubs.S")])
            _run([
                "g++", "-shared", "-fPIC", "-O1", "-std=c++20", "-w", *tools.common,
                *tools.headers, f"-DTORCH_EXTENSION_NAME={BRIDGE}", "-o", str(work / "made"),
                str(_HERE / "bridge.cpp"), str(work / "stubs.o"), f"-Wl,-soname,{made.name}",
                *_torch_libraries(tools),
            ])  # fmt: skip
            os.replace(work / "stubs.o", folder / "stubs.o")
            os.replace(work / "made", made)
    return made


def _torch_libraries(tools: Toolchain) -> list[str]:
    return ["-L", str(tools.torch / "lib"), "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]


@dataclass(frozen=True)
class ExtensionSource:
    """An extension: its files, and the words of the script for each compiler."""

    name: str
    files: tuple[Path, ...]
    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()

    def library(self) -> Path:
        """Return the compiled extension, from the cache if nothing has changed.

        Raises:
            CompilationError, ShimError: As ``toolchain``.
            BuildError: A compiler refuses the sources.
        """
        tools, base = toolchain(), bridge()
        contents = [file.read_bytes() for file in self.files]
        folder = cache_folder() / digest(self, contents, tools.key)
        made, record = folder / f"{self.name}.so", folder / "headers.json"
        if made.exists() and is_current(record):
            return made
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            work = Path(name)
            objects = self._compile(tools, work)
            link = ["g++", "-shared", "-o", str(work / "made"), *map(str, objects),
                    str(base.parent / "stubs.o"), str(base), *_torch_libraries(tools),
                    *(word for word in self.ldflags if word and word not in _STOOD_IN)]  # fmt: skip
            _run(link)
            headers = {word: content(Path(word)) for file in work.glob("*.d")
                       for word in dependencies(file.read_text(errors="replace"))}  # fmt: skip
            (work / "record").write_text(json.dumps(headers))
            os.replace(work / "record", record)
            os.replace(work / "made", made)
        return made

    def _compile(self, tools: Toolchain, work: Path) -> list[Path]:
        """Compile all files at a time."""
        objects = [work / f"{number}.o" for number in range(len(self.files))]
        with ThreadPoolExecutor() as pool:
            list(pool.map(functools.partial(self._compile_file, tools), self.files, objects))
        return objects

    def _compile_file(self, tools: Toolchain, file: Path, made: Path) -> None:
        """Compile one file; with all of PyTorch's headers if the fewer do not suffice."""
        text = file.read_text(errors="replace")
        if _NEEDS_AUTOGRAD not in text:
            folder = made.with_suffix("")
            folder.mkdir()
            (folder / OPERATORS).write_text(operator_headers(text, tools.torch / "include"))
            first = ["-I", str(_HERE / "light"), "-isystem", str(folder)]  # not among -MMD's files
            try:
                _run(self._command(tools, file, made, first))
            except BuildError:
                pass
            else:
                return
        _run(self._command(tools, file, made, []))

    def _command(self, tools: Toolchain, file: Path, made: Path, first: Sequence[str]) -> list[str]:
        given = [f"-I{folder}" for folder in self.include_paths if folder]
        common = [*first, *tools.common, *given, f"-DTORCH_EXTENSION_NAME={self.name}", "-MMD"]
        common += ["-o", str(made), "-c", str(file)]
        is_cuda = file.suffix in _SUFFIXES
        flags = list(filter(None, self.cuda_cflags if is_cuda else self.cflags))
        standard = [] if any("-std" in word for word in flags) else ["-std=c++20"]
        if not is_cuda:
            return ["g++", "-g1", "-fPIC", "-w", *common, *tools.headers, *standard, *flags]
        from torch.utils.cpp_extension import COMMON_NVCC_FLAGS

        headers = [f"-Xcompiler={word}" for word in tools.headers]
        return [str(tools.nvcc), "-w", "-Xcompiler=-fPIC,-g1", *target(flags), *common, *headers,
                *COMMON_NVCC_FLAGS, *standard, *without_target(flags)]  # fmt: skip


def operator_headers(text: str, include: Path) -> str:
    """Return the text that includes PyTorch's header of each operator named in a source."""
    names = sorted(set(_IDENTIFIER.findall(text)) - _OTHER_IN_TORCH)
    found = [name for name in names if (include / "ATen" / "ops" / f"{name}.h").is_file()]
    return "".join(f"#include <ATen/ops/{name}.h>\n" for name in found)


def target(flags: Sequence[str]) -> list[str]:
    """Return our words for PTX and lines; of 9.0a where the script names that."""
    words = [word for word in FLAGS.split() if word not in ("-cudart", "shared", "-g")]
    has_feature = any("90a" in word for word in flags)
    return [word.replace("_90", "_90a") for word in words] if has_feature else words


def without_target(flags: Sequence[str]) -> list[str]:
    """Return a script's words for nvcc without those that name GPUs."""
    others, words = [], iter(flags)
    for word in words:
        found = _ARCHITECTURE.fullmatch(word)
        if found is None:
            others.append(word)
        elif not found[2]:
            next(words, None)
    return others


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(done.stdout.strip())
    return done.stdout


def dependencies(text: str) -> list[str]:
    """Return the files that a rule of make names behind its colon."""
    _, _, words = text.replace("\\\n", " ").partition(": ")
    return [os.path.abspath(word) for word in words.split()]


def content(path: Path) -> str:
    """Return the digest of a file; nothing if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def is_current(record: Path) -> bool:
    """Whether the headers of the user's that were compiled are as they were."""
    try:
        headers: dict[str, Any] = json.loads(record.read_text())
        return all(content(Path(name)) == known for name, known in headers.items())
    except (OSError, ValueError, AttributeError):
        return False

"""Compile ``.cu`` files to a program with nvcc, as ``tilescope exec file.cu`` does."""

import contextlib
import hashlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernels.compiler.nvrtc import cache_file
from kernels.source.deprecated_names import hints

from .executable import FLAGS
from .libraries.shims import CURRENT, library_stand_ins
from .shim.build import ShimError, shims


class CompilationError(RuntimeError):
    """No compiler, or a source that it refuses; the message has what it said."""


_FLAG = re.compile(r"requires .*nvcc flag|--expt-relaxed-constexpr|--extended-lambda")
"""An error that an option of nvcc mends."""
_NO_HEADER = re.compile(r"fatal error: (?:\S*/)?(\w+)\.h: No such file")
_WHEELS = {
    "cublas": "cublas", "cublas_v2": "cublas", "cublasXt": "cublas", "cublasLt": "cublas",
    "cufft": "cufft", "cufftXt": "cufft", "curand": "curand", "curand_kernel": "curand",
    "cusparse": "cusparse",
}  # fmt: skip
"""Wheels of the libraries that have stand-ins or device code, by header."""
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
"""How files end that are compiled."""


def split_sources(first: Path, rest: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the source files that begin a command line, and its further words."""
    if first.suffix not in SOURCES:
        return [], list(rest)
    sources, words = [first], list(rest)
    while words and Path(words[0]).suffix in SOURCES and Path(words[0]).is_file():
        sources.append(Path(words.pop(0)))
    return sources, words


def compile_program(sources: Sequence[Path], options: Sequence[str], out: Path) -> None:
    """Compile and link sources with the shared runtime, PTX and line tables.

    Args:
        sources: ``.cu`` and C++ files.
        options: Words for nvcc: ``-I``, ``-D``, ``-l``, ``-L``, ``-std``, ``-arch``, ``-O``.
        out: The program's path.

    Raises:
        CompilationError: There is no nvcc, or it refuses the sources.
        ShimError: The shim cannot be built here.
    """
    nvcc = find_nvcc()
    folder = _link_folder(out.parent)
    libraries = [folder, *sorted(nvcc.parents[1].glob("lib*"))]
    flags = FLAGS.split()
    if any(word.startswith(("-arch", "-gencode", "--gpu-architecture")) for word in options):
        flags = [word for word in flags if not word.startswith(("-arch", "-code"))]
    folders = [word for folder in libraries for word in ("-L", str(folder))]
    folders += _wheel_headers()
    command = [str(nvcc), *flags, *folders, *options, "-o", str(out), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        text = (done.stderr or done.stdout).strip()
        advice = "options of nvcc stand before the file: tilescope exec --nvcc '--extended-lambda'"
        further = [advice] * bool(_FLAG.search(text))
        further += [
            f"{name}.h comes with a CUDA toolkit, or with: pip install nvidia-{_WHEELS[name]}"
            for name in _NO_HEADER.findall(text) if name in _WHEELS
        ]  # fmt: skip
        if "undefined reference to `main'" in text:
            further.append(f"there is no main(): tilescope check {sources[0]} runs a kernel alone")
        raise CompilationError("\n".join(["nvcc refuses it:", text, *hints(text), *further]))


def make_flags() -> str:
    """Return the flags that make and CMake give to nvcc, as one text without quotes.

    Stand-ins serve for libraries that the linker finds nowhere else, such as ``libcuda.so`` where
    there is no driver. They are left out if they cannot be built, or if there is no cache.
    """
    cached, words = cache_file("link"), [FLAGS, *_wheel_headers()]
    if cached is not None:
        with contextlib.suppress(ShimError):
            words.append(f"-L{_link_folder(cached.parent)}")
    return " ".join(word for word in words if word == FLAGS or not any(map(str.isspace, word)))


def _wheel_headers() -> list[str]:
    """Words that search headers of NVIDIA's wheels behind the compiler's own folders."""
    return [f"-Xcompiler=-idirafter,{place}" for place in wheel_folders("include")]


def _link_folder(work: Path) -> Path:
    """A folder with ``libcudart.so``, ``libcublas.so`` and others: what stands in is linked."""
    libraries = [shims()[0], *library_stand_ins(CURRENT)]
    key = hashlib.sha256(repr(libraries).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    folder = work / f"link-{key}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for library in libraries:
        with contextlib.suppress(FileExistsError):
            (folder / f"{library.name.partition('.')[0]}.so").symlink_to(library)
    return folder


def wheel_folders(name: str) -> list[Path]:
    """Return the folders of a name in NVIDIA's wheels, such as ``include``."""
    spec = importlib.util.find_spec("nvidia")
    places = (spec.submodule_search_locations or []) if spec else []
    return [folder for place in places for folder in sorted(Path(place).glob(f"*/{name}"))]


def find_nvcc() -> Path:
    """Return the user's nvcc, or the one of the wheels.

    Raises:
        CompilationError: There is none.
    """
    found = shutil.which("nvcc")
    if found:
        return Path(found)
    for folder in wheel_folders("bin"):
        if (folder / "nvcc").is_file():
            return folder / "nvcc"
    raise CompilationError(
        "compiling a program takes nvcc 13 and g++: install the CUDA toolkit, or "
        "pip install 'nvidia-cuda-nvcc==13.0.*'"
    )

"""The headers of a compilation: the user's own, and what stands for those of the host."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .nvcc_macros import as_nvcc
from .toolkit import OWN_HEADERS, toolkit_folders

IMPLICIT = (
    "stddef.h", "stdint.h", "math.h", "float.h", "limits.h", "stdio.h", "assert.h", "sys/types.h",
    "math_constants.h", "cuda_device_runtime_api.h",
)  # fmt: skip
"""Headers whose names device code may use although it does not include them: nvcc does."""

_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)("[^">\n]+"|<[^">\n]+>)', re.M)
_DEVICE_PARTS = {"algorithm": ("__algorithm/min.h", "__algorithm/max.h", "__algorithm/clamp.h")}
"""Of headers that CUDA's own standard library has in parts only."""
_DEVICE_THRUST = (
    "thrust/complex.h", "thrust/tuple.h", "thrust/pair.h", "thrust/functional.h", "thrust/random",
    "thrust/iterator/",
)  # fmt: skip
"""Headers of Thrust that kernels use themselves; the others are the host's."""
OF_NVCC = ("algorithm", "cmath", "cstdlib", "cstring", "limits", "type_traits", "utility")
"""Headers whose names in ``std`` are known to what includes nothing: nvcc's own bring them in."""

_LIBRARIES = (
    r"(cublas|cufft|cusparse|cusolver|cudnn|nvtx|npp|nccl|nvml|driver_types|cudaProfiler)\w*\.h"
    r"|(cuda_profiler_api|cuda_\w+_interop|nvToolsExt|mpi|omp|multithreading|drvapi_error_string)\.h"
    r"|helper_(cuda|cuda_drvapi|functions|image|string|timer|gl|cusolver)\.h"
)
"""Headers of CUDA's libraries for the host, and of its samples, where nothing of them is here."""
_HOSTS = (
    # The C++ library's have no endings; then C's, those of systems, and of well-known packages.
    r"[a-z_]+|(assert|complex|conio|cpuid|ctype|direct|dirent|dlfcn|errno|exception|execinfo|fcntl"
    r"|fenv|getopt|intrin|io|libgen|locale|malloc|memory|poll|process|pthread|sched"
    r"|semaphore|setjmp|signal|stdarg|stdatomic|stdlib|stdnoreturn|string|strings|termios|tgmath"
    r"|threads|time|uchar|unistd|wchar|wctype|windows|x86intrin|[a-z]mmintrin|immintrin)\.h"
    r"|(sys|netinet|arpa|linux|nvtx3|thrust|cub/device|GL|GLFW|opencv2|torch|ATen|c10|pybind11"
    r"|gtest|boost)/.*"
)


def is_hosts(header: str, quoted: bool) -> bool:
    """Whether a header that is not there is known by its name to be the host's alone."""
    return re.fullmatch(_LIBRARIES if quoted else f"{_LIBRARIES}|{_HOSTS}", header) is not None


@dataclass
class Included:
    """Headers that some files include, resolved through the user's own headers.

    Attributes:
        texts: The user's headers by path.
        called: Names by which the compiler finds them.
        names: Spellings of their includes.
        paths: Meaning of each spelling in a file of a folder. With quotes a header is first
            searched next to the file; tilelang has a ``cuda_fp8.h`` that includes CUDA's
            ``<cuda_fp8.h>``.
        toolkit: Toolkit headers that the user's files include.
        missing: Headers that are not found.
        quoted: Those of them that are certainly the user's.
    """

    texts: dict[Path, str] = field(default_factory=dict)
    called: dict[Path, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    paths: dict[tuple[Path, str], Path] = field(default_factory=dict)
    toolkit: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    quoted: set[str] = field(default_factory=set)

    def directed(self, text: str, folder: Path) -> str:
        """Return a text whose directives name the user's headers by path, and find nvcc."""

        def exact(m: re.Match[str]) -> str:
            found = self.paths.get((folder, m[2]))
            return f'{m[1]}"{self.called[found]}"' if found in self.called else m[0]

        return _INCLUDE.sub(exact, as_nvcc(text))


def follow(source: str, directory: Path, options: Sequence[str]) -> Included:
    """Find the headers of a source as a compiler would, conditions left aside."""
    folders = [directory, *named_folders(options)]
    found = Included()
    waiting = [(source, directory)]
    while waiting:
        text, here = waiting.pop()
        for _, spelled in _INCLUDE.findall(text):
            name = spelled[1:-1]
            path = _find(name, (here, *folders) if spelled[0] == '"' else folders)
            if path is None:
                known = any(
                    (folder / name).is_file() for folder in (*toolkit_folders(), OWN_HEADERS)
                )
                (found.toolkit if known else found.missing).append(name)
                if spelled[0] == '"' and not known:
                    found.quoted.add(name)
                continue
            found.names.add(name)
            found.paths[here, spelled] = path
            if path not in found.texts:
                try:
                    found.texts[path] = path.read_text(encoding="utf-8-sig", errors="replace")
                    found.called[path] = f"tilescope-{len(found.called)}.h"
                except OSError:  # unreadable: the compiler will say so
                    continue
                waiting.append((found.texts[path], path.parent))
    return found


def named(text: str) -> list[str]:
    """Return the headers that a text includes, conditions left aside."""
    return [spelled[1:-1] for _, spelled in _INCLUDE.findall(text)]


def _find(name: str, folders: Iterable[Path]) -> Path | None:
    for folder in folders:
        try:
            path = (folder / name).resolve()
            if path.is_file():
                return path
        except (OSError, ValueError, RuntimeError):  # no name of a file
            continue
    return None


def named_folders(options: Sequence[str]) -> list[Path]:
    """Return the folders in options ``-Ifolder``, ``-I folder`` and ``--include-path=folder``."""
    found = []
    for option, following in zip(options, [*options[1:], ""], strict=False):
        if option in ("-I", "--include-path") and following:
            found.append(Path(following))
        elif m := re.match(r"(?:-I|--include-path=)(.+)", option):
            found.append(Path(m[1]))
    return found


def no_folders(options: Sequence[str]) -> list[str]:
    """Return a sentence for each folder of the options that is none."""
    return [f"-I {folder}: no such folder" for folder in named_folders(options)
            if not folder.is_dir()]  # fmt: skip


def substitutes(included: Included) -> dict[str, str]:
    """Headers that NVRTC cannot take, by name, and what it gets for them."""
    found = {name: left_of(name) for name in included.missing}
    for name in included.toolkit:
        if name == "cub/cub.cuh":
            found[name] = (OWN_HEADERS / "cub" / "cub.cuh").read_text(encoding="utf-8")
        elif name.startswith(_DEVICE_THRUST):
            found |= standard_library(("complex", "limits"))
            if name == "thrust/complex.h":  # its few functions for the host stop NVRTC
                found[name] = _toolkit_text(name).replace("_CCCL_HOST ", "")
        elif name.startswith(("cub/device/", "thrust/")):
            found[name] = ""
    return found


def _toolkit_text(name: str) -> str:
    path = next(folder / name for folder in toolkit_folders() if (folder / name).is_file())
    return path.read_text(encoding="utf-8")


def left_of(name: str) -> str:
    """Return what device code needs of a missing header: number types, POSIX's version."""
    if name.startswith("cufft"):
        pairs = ("cuComplex cufftComplex", "cuDoubleComplex cufftDoubleComplex",
                 "float cufftReal", "double cufftDoubleReal")  # fmt: skip
        return "#include <cuComplex.h>\n" + "".join(f"typedef {pair};\n" for pair in pairs)
    if name == "unistd.h":
        return "#ifndef _POSIX_VERSION\n#define _POSIX_VERSION 200809L\n#endif\n"
    types = ("cuComplex", "cuda_fp16", "cuda_bf16") if name.startswith("cublas") else ()
    return "".join(f"#include <{header}.h>\n" for header in types)


def standard_library(names: Iterable[str]) -> dict[str, str]:
    """CUDA's own standard library in the place of the host's, as far as it has the headers.

    What a stand-in of ours has goes first: ``cuda::std`` lacks ``fmod``.
    """
    found = {}
    for name in names:
        parts = _DEVICE_PARTS.get(name, (name,))
        headers = [
            f"cuda/std/{part}"
            for part in parts
            if any((folder / "cuda" / "std" / part).is_file() for folder in toolkit_folders())
        ]
        if headers:
            own = OWN_HEADERS / name
            lines = [own.read_text(encoding="utf-8")] if own.is_file() else []
            lines += [f"#include <{header}>" for header in headers]
            found[name] = "\n".join([*lines, "namespace std { using namespace cuda::std; }", ""])
    return found

"""Properties of a built program, read from its ELF file before it is started."""

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from .fatbin import MAGIC
from .shim.build import VERSIONS

FLAGS = "-cudart shared -lineinfo -g -arch=compute_90 -code=compute_90 --compress-mode=none"
"""What nvcc has to be given: the shared runtime, PTX, and the lines of host and device code."""


class ProgramRefusedError(Exception):
    """A program that cannot run here; the message says why, and what to do."""


@dataclass(frozen=True)
class Executable:
    """An ELF program: the libraries that it needs, and whether it brings device code."""

    path: Path
    needed: tuple[str, ...]
    has_device_code: bool
    machine: str


def is_elf(path: Path) -> bool:
    """Whether a file is a compiled program."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def executable(path: Path) -> Executable:
    """Read a program's headers.

    Raises:
        ProgramRefusedError: It is no ELF file that can be read.
    """
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            dynamic = elf.get_section_by_name(".dynamic")
            tags = dynamic.iter_tags() if isinstance(dynamic, DynamicSection) else ()
            needed = tuple(
                str(getattr(tag, "needed", "")) for tag in tags if tag.entry.d_tag == "DT_NEEDED"
            )
            section = elf.get_section_by_name(".nv_fatbin")
            content = section.data() if section else b""
            return Executable(path, needed, MAGIC.to_bytes(4, "little") in content,
                              elf.get_machine_arch())  # fmt: skip
    except (ELFError, OSError, ValueError) as error:
        raise ProgramRefusedError(f"{path}: no program that can be read ({error})") from None


def check(program: Executable) -> None:
    """Refuse what the shim cannot serve.

    A program without device code of its own may start others that have some.

    Raises:
        ProgramRefusedError: It is linked with the static runtime, or with another version's.
    """
    runtimes = [name for name in program.needed if name.startswith("libcudart.so")]
    known = [f"libcudart.so.{version}" for version in VERSIONS]
    other = [name for name in runtimes if name not in known]
    if other:
        raise ProgramRefusedError(
            f"{program.path.name} needs {other[0]}; programs of CUDA 12 and 13 run here. Build it "
            f"with nvcc 13 and:\n  nvcc {FLAGS}"
        )
    if program.has_device_code and not runtimes:
        raise ProgramRefusedError(
            f"{program.path.name} has the CUDA runtime linked in, where its calls cannot be "
            f"answered. Build it again with:\n  nvcc {FLAGS}\n"
            "(make: NVCC_APPEND_FLAGS in the environment; CMake: "
            "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared as well)"
        )

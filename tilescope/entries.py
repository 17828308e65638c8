"""What a command line names: a file, and which kernel of it."""

import os
import re
from pathlib import Path

from kernels import KernelError
from kernels.reading import source_text
from kernels.signatures import kernel_names

from .failure import UserError
from .host_program import is_cuda
from .words import is_argument

_ENTRY = re.compile(r"\.entry\s+(\w+)")


def refuse_pipeline(target: str) -> None:
    """Refuse a file with several launches.

    Raises:
        UserError: It is one.
    """
    if target.endswith(".toml"):
        raise UserError(f"{target}: .toml files are for run, check and view")


def is_file(target: str) -> bool:
    """Whether a file is meant, and no kernel of the library."""
    return is_cuda(target) or target.endswith(".ptx") or os.sep in target or Path(target).is_file()


def names_a_kernel(word: str, file: str) -> bool:
    """Whether the first word is the entry's name: ``inf`` and ``nan`` are numbers, too."""
    if not (is_argument(word) and word.isalpha()):
        return not is_argument(word)
    try:
        text = source_text(Path(file))
    except (OSError, KernelError):  # told by whoever needs the file
        return False
    named = {name.split("::")[-1] for name in kernel_names(text)}
    return word in named or any(e == word for e in _ENTRY.findall(text))


def only_kernel(file: str) -> str:
    """The entry to take where none was named."""
    found = kernel_names(source_text(Path(file)))
    if len(found) == 1 and "<" not in found[0]:
        return found[0].split("::")[-1]
    if not found:
        raise KernelError(f"{file} has no __global__ function")
    raise KernelError(f"which kernel of {file}? there are: {', '.join(found)}")

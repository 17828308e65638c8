"""Names on a command line: a file, and a kernel in it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from kernels import KernelError
from kernels.source.preprocessor import directives
from kernels.source.signatures import find, kernel_names
from kernels.source.templates import deduced
from kernels.source_access import source_text

from .argument_spec import is_argument
from .errors import UserError
from .host_program import headers_of, is_cuda, kernels_of

_ENTRY = re.compile(r"\.entry\s+(\w+)")
_TYPED = re.compile(r"(\w+)(?:(\[)|:)")
_KINDS = {
    "f16": "__half", "f32": "float", "f64": "double", "i16": "short", "i32": "int",
    "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long",
}  # fmt: skip
"""The types of words in C++, where there is one that comes to mind."""


def refuse_pipeline(target: str) -> None:
    """Reject a pipeline file.

    Raises:
        UserError: The target is one.
    """
    if target.endswith(".toml"):
        raise UserError(f"{target}: .toml files are for run, check and view")


def is_file(target: str) -> bool:
    """Whether a target is a file and not a library kernel."""
    return is_cuda(target) or target.endswith(".ptx") or os.sep in target or Path(target).is_file()


def names_a_kernel(word: str, file: str, options: Sequence[str] = ()) -> bool:
    """Whether the first word is the entry's name; ``inf`` and ``nan`` may be numbers."""
    if not (is_argument(word) and word.isalpha()):
        return not is_argument(word)
    try:
        named = {name.split("::")[-1] for name in kernels_of(file, options)}
        text = source_text(Path(file))
    except (OSError, KernelError):  # reported where the file is needed
        return False
    return word in named or any(e == word for e in _ENTRY.findall(text))


def only_kernel(file: str, options: Sequence[str] = ()) -> str:
    """Return the default entry: the only kernel of the file or its headers."""
    found = kernel_names(source_text(Path(file))) or names(file, options)
    if len(found) == 1 and "<" not in found[0]:
        return found[0].split("::")[-1]
    raise KernelError(f"which kernel of {file}? there are: {', '.join(found)}")


def names(file: str, options: Sequence[str] = ()) -> list[str]:
    """Return the kernels of a CUDA C++ file and its headers, or of a PTX file.

    Raises:
        KernelError: There are none.
    """
    if file.endswith(".ptx"):
        found = [*dict.fromkeys(_ENTRY.findall(source_text(Path(file))))]
        if not found:
            raise KernelError(f"{file}: no .entry in this text; is it PTX?")
        return found
    found = kernels_of(file, options)
    texts = [source_text(Path(file)), *headers_of(file, options).values()]
    if not found and any(
        "__global__" in t[start:end] for t in texts for start, end in directives(t)
    ):
        raise KernelError(f"which kernel of {file}? macros declare those it has: name one")
    if not found:
        raise KernelError(f"{file} has no __global__ function")
    return found


def written_out(entry: str, words: Sequence[str], file: str, options: Sequence[str] = ()) -> str:
    """Return an entry with template arguments deduced from the argument words' types."""
    if "<" in entry or not entry.isidentifier():
        return entry
    text = source_text(Path(file))
    one = find({"": text, **headers_of(file, options)}, entry)
    if one is None or not one.parameters:
        return entry
    found = (_TYPED.match(word) for word in words if not word.startswith("sym:"))
    kinds = [_KINDS[m[1]] + "*" * bool(m[2]) if m and m[1] in _KINDS else "" for m in found]
    args = deduced(one.parameters, [kind for kind, _ in one.params], (), kinds)
    known = [arg for arg in args if arg is not None]
    return f"{entry}<{', '.join(known)}>" if known and len(known) == len(args) else entry

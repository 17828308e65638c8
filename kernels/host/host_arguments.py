"""Arguments of the host's launches as words, and which of a kernel's overloads takes them."""

from collections.abc import Sequence

from ..ptx.types import TYPE_SIZES
from ..source.element_types import spelled
from ..source.signatures import Signature
from ..source.structures import SCALARS


def overload(kernel: str, args: Sequence[str | None], declared: Sequence[Signature]) -> str:
    """Return a launch's kernel, with parameter types if overloads differ in them."""
    named = [one for one in declared if one.name == kernel.split("::")[-1] and not one.template]
    found = [
        [kind for kind, _ in one.params] for one in named
        if len(one.params) == len(args) and all(map(_may_be, args, (k for k, _ in one.params)))
    ]  # fmt: skip
    if len(named) < 2 or len(found) != 1:
        return kernel
    return f"{kernel}({', '.join(found[0])})"


def _may_be(word: str | None, kind: str) -> bool:
    """Whether an argument's word may be of a parameter's type: arrays are for pointers to them."""
    plain = spelled(kind, {})
    if word is None or "[" not in word:
        return word is None or not plain.endswith("*")
    return plain.endswith("*") and element_word(plain[:-1].strip()) in ("", word.split("[")[0])


def element_word(kind: str) -> str:
    """Return a type as words of arrays have it, ``f32``; ``""`` for one that they have not."""
    ptx = SCALARS.get(kind, "")
    wide = TYPE_SIZES.get(ptx, 0)
    return f"{ ({'s': 'i', 'b': 'u'}.get(ptx[0], ptx[0])) }{wide * 8}" if wide else ""

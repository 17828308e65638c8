"""CUDA C++ as a syntax tree: what stands where in a source file, macros not expanded.

A grammar knows nothing of the preprocessor, so a tree may hold errors although a
compiler takes the file. Whoever reads one has to be content with what it is sure of.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser, Tree


@functools.cache
def _parser() -> Parser:
    import tree_sitter_cuda
    from tree_sitter import Language, Parser  # here, for the time that importing it takes

    return Parser(Language(tree_sitter_cuda.language()))


def parse(text: bytes) -> Tree:
    """The tree of a source text; positions in it count bytes, lines count from 0."""
    return _parser().parse(text)

"""CUDA C++ as a syntax tree, with macros not expanded.

A grammar knows nothing of the preprocessor, so a tree may hold errors although a
compiler takes the file. Readers use only the parts without errors.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree


@functools.cache
def _parser() -> Parser:
    import tree_sitter_cuda
    from tree_sitter import Language, Parser  # here, for the time that importing it takes

    return Parser(Language(tree_sitter_cuda.language()))


def parse(text: bytes) -> Tree:
    """Return the tree of a source text; positions in it count bytes, lines count from 0."""
    return _parser().parse(text)


def descendants(node: Node, closed: Collection[str] = ()) -> Iterator[Node]:
    """Yield all below a node, in the order of the text; of a type in ``closed`` not what is inside.

    No recursion: a stranger's text nests as deep as it likes.
    """
    stack = list(reversed(node.children))
    while stack:
        child = stack.pop()
        yield child
        if child.type not in closed:
            stack.extend(reversed(child.children))


def declared(declarator: Node | None) -> tuple[Node | None, list[Node]]:
    """Return a declarator's name, and the declarators around it, the outermost first."""
    around = []
    while declarator is not None and not declarator.type.endswith("identifier"):
        around.append(declarator)
        inside = [
            c for c in declarator.named_children if c.type.endswith(("declarator", "identifier"))
        ]
        declarator = declarator.child_by_field_name("declarator") or (inside[0] if inside else None)
    return declarator, around

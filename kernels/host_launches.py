"""The launches in a program's host code: ``k<<<grid, block, shared>>>(args)``, as far as it says.

Nothing of the host's is run. Constants, ``dim3`` variables, what short functions return and the
sizes given to ``cudaMalloc`` are folded where a name has one value in its function; all else is
unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .host_functions import declarations, other_launches, without_braces
from .host_values import Scope
from .preprocessor import Macros
from .syntax import descendants, parse

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class HostLaunch:
    """One launch; what is not known is ``None``.

    Attributes:
        line: Of the source, from 1.
        kernel: As the launch names it: ``tiled<16>``.
        grid: Blocks, x first; ``block``: threads of a block.
        shared_bytes: Dynamic shared memory.
        args: Words for ``tilescope run``: ``f32[1024]``, ``64``.
    """

    line: int
    kernel: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared_bytes: int | None
    args: tuple[str | None, ...]

    @property
    def known(self) -> bool:
        """Whether all of it is."""
        return None not in (self.grid, self.block, self.shared_bytes, *self.args)

    def words(self, file: str) -> list[str]:
        """The command line that makes it, ``?`` for what is not known."""
        shapes = [
            "?" if shape is None else ",".join(map(str, shape)) for shape in (self.grid, self.block)
        ]
        words = [file, self.kernel, "--grid", shapes[0], "--block", shapes[1]]
        if self.shared_bytes != 0:
            words += ["--shared", "?" if self.shared_bytes is None else str(self.shared_bytes)]
        return [*words, *("?" if arg is None else arg for arg in self.args)]


def host_launches(source: str, headers: str = "", options: Sequence[str] = ()) -> list[HostLaunch]:
    """The launches of a source text, in its order.

    ``headers``: what it includes of the user's own, and ``options``, NVRTC's, say what names mean.
    """
    if "<<<" not in source:
        return []
    whole = f"{headers}\n{source}"
    text, begin = whole.encode("ascii", "replace"), len(headers) + 1
    said = Macros([whole], (), frozenset()) | Macros([], options, frozenset())
    macros = {name: macro.body for name, macro in said.items() if not macro.call}
    text, braced = without_braces(text)
    root = parse(text).root_node
    shared = Scope(
        text, macros, {"": whole}, declarations(root, braced), first=headers.count("\n") + 1
    )
    for child in root.children:
        if child.type in ("declaration", "enum_specifier"):
            shared.learn(child)
    found = []
    scope, end = shared, 0
    for node in descendants(root):
        if node.start_byte >= end:
            scope = shared
        if node.type == "function_definition":
            scope, end = shared.inside(), node.end_byte
            scope.learn(node)
        called = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
        if called is not None and node.start_byte >= begin:
            found.append(_launch(node, called, scope))
    return found


def unread_launches(source: str) -> list[tuple[int, str]]:
    """Lines of a source text that launch kernels by calls, and these calls."""
    if "Launch" not in source:
        return []
    root = parse(source.encode("ascii", "replace")).root_node
    return [(row + 1, name) for row, name in other_launches(root)]


def _launch(call: Node, called: Node, scope: Scope) -> HostLaunch:
    named = call.child_by_field_name("function")
    listed = call.child_by_field_name("arguments")
    given = called.named_children
    shape = [scope.shape(given[i]) if i < len(given) else None for i in (0, 1)]
    shared = scope.value(given[2]) if len(given) > 2 else 0
    return HostLaunch(
        call.start_point[0] + 1 - scope.first,
        scope.text(named) if named else "?",
        shape[0], shape[1],
        shared if isinstance(shared, int) else None,
        tuple(scope.word(arg) for arg in (listed.named_children if listed else ())),
    )  # fmt: skip

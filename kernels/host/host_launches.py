"""The launches in a program's host code: ``k<<<grid, block, shared>>>(args)``, as far as it says.

Nothing of the host's is run. Constants, ``dim3`` variables, what short functions return and the
sizes given to ``cudaMalloc`` are folded where a name has one value in its function; so are the
template arguments of functions that launch, for each of their calls. All else is unknown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..source.preprocessor import Macros, without_statement_macros
from ..source.signatures import Signature, signatures
from ..source.syntax import parse
from .host_arguments import overload
from .host_functions import LAUNCHING, declarations, without_braces, without_spaces
from .host_instances import Bound, HostProgram, Use, base_name
from .host_kernels import bare, kernel_of
from .host_values import HostScope

if TYPE_CHECKING:
    from tree_sitter import Node

_LAUNCHES = re.compile(r"<<\s*<|Launch")
_FAR = 400
_MAX_LAUNCHES = 500
"""Launches of a file, about."""


@dataclass(frozen=True)
class HostLaunch:
    """One launch; what is not known is ``None``.

    Attributes:
        line: Of the source, from 1; ``file``: the header that it is in, ``""`` of the source.
        kernel: As C++ names it outside of any function: ``tiled<16>``; with ``?`` for what is not
            known of it. Then ``lacking`` says why, and ``example`` is one that may be meant.
        grid: Blocks, x first; ``block``: threads of a block.
        shared_bytes: Dynamic shared memory.
        args: Words for ``tilescope run``: ``f32[1024]``, ``64``.
        params: (type, name) of the kernel's parameters, where there are as many.
        bound: What the parameters of the templates around it are: ``T = float``.
        called: The function that launches it, where that is no ``<<<>>>``.
    """

    line: int
    kernel: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared_bytes: int | None
    args: tuple[str | None, ...]
    file: str = ""
    lacking: str = ""
    example: str = ""
    params: tuple[tuple[str, str], ...] = ()
    bound: str = ""
    called: str = ""

    @property
    def cooperative(self) -> bool:
        """Whether its blocks may wait for each other."""
        return "Cooperative" in self.called

    @property
    def known(self) -> bool:
        """Whether all of it is."""
        return None not in (self.grid, self.block, self.shared_bytes, *self.args) and (
            not self.lacking
        )

    def words(self, file: str) -> list[str]:
        """Return the command line that makes it, ``?`` for what is not known."""
        shapes = [
            "?" if shape is None else ",".join(map(str, shape)) for shape in (self.grid, self.block)
        ]
        words = [file, self.kernel, "--grid", shapes[0], "--block", shapes[1]]
        if self.shared_bytes != 0:
            words += ["--shared", "?" if self.shared_bytes is None else str(self.shared_bytes)]
        words += ["--cooperative"] * self.cooperative
        return [*words, *("?" if arg is None else arg for arg in self.args)]


def host_launches(
    source: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
) -> list[HostLaunch]:
    """Return the launches of a source text, in its order, then those of what it includes.

    ``headers``: texts by name, of the user's own; they, and ``options``, NVRTC's, say what names
    mean.
    """
    return [one for one in _all(source, (*headers.items(),), (*options,)) if one.kernel]


def unread_launches(
    source: str, headers: Mapping[str, str] = MappingProxyType({}), options: Sequence[str] = ()
) -> list[tuple[str, int, str]]:
    """Return the calls that launch kernels in a way that is not read: header, line and function."""
    found = [one for one in _all(source, (*headers.items(),), (*options,)) if not one.kernel]
    return [(one.file, one.line, one.called) for one in found]


@functools.lru_cache(maxsize=4)
def _all(
    source: str, headers: tuple[tuple[str, str], ...], options: tuple[str, ...]
) -> tuple[HostLaunch, ...]:
    """Return the launches; those that are not read have no kernel."""
    texts = {**dict(headers), "": source}
    if not any(_LAUNCHES.search(text) for text in texts.values()):
        return ()
    whole = "\n".join(texts.values())
    said = Macros([whole], (), frozenset()) | Macros([], options, frozenset())
    macros = {name: macro.body for name, macro in said.items() if not macro.call}
    text = without_spaces(whole.encode("ascii", "replace")).decode("ascii")
    text = without_statement_macros(text, Macros([whole], options, frozenset()))
    plain, braced = without_braces(text.encode("ascii"))
    root = parse(plain).root_node
    shared = HostScope(plain, macros, {"": whole}, declarations(root, braced))
    for child in root.children:
        if child.type in ("declaration", "enum_specifier"):
            shared.learn(child)
    program = HostProgram(shared)
    program.read(root)
    declared = [one for text in texts.values() for one in signatures(text)]
    found: dict[str, list[HostLaunch]] = {name: [] for name in texts}
    for use in program.launches:
        file, line = _place(texts, use.node.start_point[0])
        if len(found[file]) >= _MAX_LAUNCHES:
            continue
        launches = [_read(use, scope, declared, bound) for bound, scope in program.scopes_of(use)]
        found[file] += [replace(one, file=file, line=line) for one in dict.fromkeys(launches)]
    return (*found.pop(""), *(one for those in found.values() for one in those))


def _place(texts: Mapping[str, str], row: int) -> tuple[str, int]:
    """Return the text that a row of all of them belongs to, and its line there."""
    at = row
    for name, text in texts.items():
        if at <= text.count("\n"):
            return name, at + 1
        at -= text.count("\n") + 1
    return "", row + 1


def _read(use: Use, scope: HostScope, declared: Sequence[Signature], bound: Bound) -> HostLaunch:
    named = use.node.child_by_field_name("function")
    listed = use.node.child_by_field_name("arguments")
    given = listed.named_children if listed else []
    configured = next((c for c in use.node.children if c.type == "kernel_call_syntax"), None)
    arguments: list[Node] | None = given
    shape = configured.named_children if configured else []
    called = "" if configured or not named else base_name(scope.text(named))
    unread = HostLaunch(0, "", None, None, None, (), called=called)
    if called:
        way = LAUNCHING.fullmatch(called)
        if way is None or way[1] != way[0] or len(given) < 4:
            return unread
        named, shape, arguments = given[0], [*given[1:3], *given[4:5]], _pointed(given[3], scope)
    if named is None:
        return unread
    before = scope.source[: configured.start_byte][-_FAR:].decode("ascii") if configured else ""
    kernel, params, lacking, example = kernel_of(named, arguments, scope, declared, before)
    if arguments is None and not params:
        return unread
    words = [None] * len(params) if arguments is None else [scope.word(arg) for arg in arguments]
    kernel = overload(kernel, words, declared)
    shapes = [scope.shape(shape[i]) if i < len(shape) else None for i in (0, 1)]
    shared = scope.value(shape[2]) if len(shape) > 2 else 0
    return HostLaunch(
        0, kernel, shapes[0], shapes[1], shared if isinstance(shared, int) else None, tuple(words),
        lacking=lacking, example=example,
        params=params if len(params) == len(words) else (), called=called,
        bound=", ".join(f"{name} = {text}" for name, text in bound.items() if text and name),
    )  # fmt: skip


def _pointed(node: Node, scope: HostScope) -> list[Node] | None:
    """Return the targets of ``void *args[] = {&a, &n}``; ``None`` if they are unclear."""
    value = scope.values.get(scope.text(node)) if node.type == "identifier" else None
    if value is None or value.type != "initializer_list":
        return None
    found = [bare(one) for one in value.named_children]
    return [one for one in found if scope.text(one) not in ("nullptr", "NULL", "0")]

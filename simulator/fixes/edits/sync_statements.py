"""Statements that might fix a race with what is under way, in the source's own spelling.

A wait, the end of a group, or a fence: what the source calls so (an intrinsic, a function or macro
around one ``asm``), with a zero where it has a number, or else the ``asm`` itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...hazards.hazard import Hazard
from ...hazards.kinds import EQUAL, GUESS, LEAVES, OVERRUN
from ...hazards.relaxed_reads import FRESH
from .insertion_points import Levels
from .statements import Syntax, descendants, field_text

if TYPE_CHECKING:
    from tree_sitter import Node

BLOCK_BARRIER, WARP_BARRIER = "__syncthreads();", "__syncwarp();"


@dataclass(frozen=True)
class _Statement:
    """Source statement that compiles to one PTX instruction.

    Attributes:
        ptx: A pattern for it; ``code``: with all that it needs.
        intrinsic: What it is where the source has ``used`` in it.
        calls: What it is of what a pattern finds there: a pipeline, a group of threads.
        further: Whether ``code`` does more than what the source has may do.
    """

    ptx: str
    code: str
    intrinsic: str = ""
    used: bytes = b"__pipeline_"
    calls: tuple[tuple[bytes, str], ...] = ()
    further: bool = False

    def spellings(self, syntax: Syntax) -> Iterator[str]:
        """Ways to write it, likeliest first."""
        known = False
        if self.intrinsic and any(self.used in content for content in syntax.files.values()):
            yield self.intrinsic
            known = True
        for pattern, text in self.calls:
            for name in re.findall(pattern, b"\n".join(syntax.files.values())):
                yield text.format(name.decode())
                known = True
        for text in _wrappers(syntax, re.compile(self.ptx.encode())):
            yield text
            known = True
        if not known or self.further:
            yield f'asm volatile("{self.code};" ::: "memory");'


_PIPELINE = rb"\b(\w+)\s*=\s*(?:cuda::)?make_pipeline\b"
_COMMIT = _Statement(
    r"cp\.async\.commit_group", "cp.async.commit_group", "__pipeline_commit();",
    calls=((_PIPELINE, "{}.producer_commit();"),),
)  # fmt: skip
_WAIT = _Statement(
    r"cp\.async\.wait_(group|all)", "cp.async.wait_all", "__pipeline_wait_prior(0);",
    calls=(
        (_PIPELINE, "{}.consumer_wait();"),
        (rb"(?<!cuda::)\bmemcpy_async\s*\(\s*(\w+)", "cooperative_groups::wait({});"),
    ),
    further=True,
)  # fmt: skip
_BULK_WAIT = _Statement(
    r"cp\.async\.bulk\.wait_group", "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0"
)
_SENT_WAIT = _Statement(
    r"cp\.async\.bulk\.wait_group(?!\.read)",
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0",
)
_PRODUCT_WAIT = _Statement(r"wgmma\.wait_group", "wgmma.wait_group.sync.aligned 0")
_PRODUCT_COMMIT = _Statement(r"wgmma\.commit_group", "wgmma.commit_group.sync.aligned")
_PRODUCT_FENCE = _Statement(r"wgmma\.fence", "wgmma.fence.sync.aligned")
_PROXY_FENCE = _Statement(r"fence\.proxy\.async", "fence.proxy.async.shared::cta")
_CLUSTER_BARRIER = _Statement(
    r"barrier\.cluster", "barrier.cluster.arrive; barrier.cluster.wait",
    "cooperative_groups::this_cluster().sync();", b"this_cluster",
)  # fmt: skip

_NAMED = re.compile(
    rb"\bbar(?:rier)?(?:\.cta)?\.sync(?:\.aligned)?\s+(?!0\s*;)|\b__barrier_sync(?:_count)?\s*\("
)
_GRIDS = (
    rb"\b(\w+)\s*[=({]\s*(?:\w+::)*this_grid\s*\(",
    rb"\bgrid_group\s*&?\s*(\w+)",
    rb"((?:\b\w+::)*\bthis_grid\(\s*\))",
)
_TILE = rb"(?:tiled_partition|coalesced_threads|binary_partition|labeled_partition)\b"
_TILES = (
    rb"\b(\w+)\s*[=({]\s*(?:\w+::)*" + _TILE,
    rb"\b(?:thread_block_tile\s*<[\w\s,:]*>|coalesced_group)\s*(?:const\b)?\s*&?\s*(\w+)",
)
_SPELLINGS = 4
"""Of named barriers, of the grid's, and of a warp's parts, so many statements are tried."""
_COMMITS = (_COMMIT, _PRODUCT_COMMIT)
_PLACES, RIGHT_BEHIND = 8, 1
"""At how many places a statement is tried; the end of a group goes right behind what is in it."""

_REMEDIES: dict[str, tuple[tuple[_Statement, ...], bool]] = {
    "copy": ((_COMMIT, _WAIT), True),
    "bulk": ((_BULK_WAIT,), True),
    "sent": ((_SENT_WAIT,), True),
    "transaction": ((), False),
    "product": ((_PRODUCT_COMMIT, _PRODUCT_WAIT), True),
    "proxy": ((_PROXY_FENCE,), True),
    "registers": ((_PRODUCT_WAIT,), False),
    "ungrouped": ((_PRODUCT_COMMIT,), False),
    "unfenced": ((_PRODUCT_FENCE,), False),
    "far": ((_CLUSTER_BARRIER,), False),
    LEAVES: ((_CLUSTER_BARRIER,), False),
}
"""What may be missing, by a race's case; and whether a barrier behind it may be, too."""
QUEUES = {
    "copy": "copy", "bulk": "bulk", "sent": "bulk", "product": "product", "registers": "product",
}  # fmt: skip
"""What a wait is for, by a race's case, as its row has it."""
WAITED = ("copy", "bulk", "sent", "product")
"""The cases of which a wait may be missing: the later it is, the more goes on meanwhile."""


def remedies(
    syntax: Syntax, case: str, begun: Levels | None = None
) -> Sequence[tuple[str, int]] | None:
    """Return statements to try, likeliest first, with places; ``None``: a barrier alone.

    ``begun``: where what is under way began: no end of its group is missing where one follows.
    """
    if case not in _REMEDIES:
        return None
    missing, shared = _REMEDIES[case]
    tried = [
        (text, RIGHT_BEHIND if one in _COMMITS else _PLACES)
        for one in missing
        if begun is None or one not in _COMMITS or not _follows(syntax, one, begun)
        for text in dict.fromkeys(one.spellings(syntax))
    ]
    if shared:
        tried += [(f"{text} {BLOCK_BARRIER}", _PLACES) for text, many in tried if many == _PLACES]
    return tried


def _follows(syntax: Syntax, what: _Statement, begun: Levels) -> bool:
    """Whether such a statement comes after a place, in a list around it."""
    names = [text.partition("(")[0].partition("<")[0] for text in what.spellings(syntax)]
    calls = [rf"^{re.escape(name)}\b" for name in names if not name.startswith("asm")]
    found = re.compile("|".join([what.ptx, *calls]).encode())
    return any(
        node.type == "expression_statement" and found.search(node.text or b"")
        for body, index in begun
        for node in body.statements[index + 1 :]
    )


def named_barriers(syntax: Syntax) -> list[str]:
    """Return statements that meet at a barrier by its number, as the source has them.

    Where not all threads of a block come, one of these may be the one that is missing.
    """
    wrappers = set[bytes]()
    for root in syntax.roots.values():
        for node in descendants(root, {"preproc_function_def", "preproc_def"}):
            if _NAMED.search(field_text(node, "value")):
                wrappers.add(field_text(node, "name"))
        for node in descendants(root, {"function_definition"}):
            body = node.child_by_field_name("body")
            if body is not None and body.named_child_count == 1 and _NAMED.search(body.text or b""):
                wrappers.add(_name(node))
    found: dict[str, None] = {}
    for root in syntax.roots.values():
        for node in descendants(root, {"expression_statement"}):
            text, what = node.text or b"", node.named_children[0]
            name = field_text(what, "function").split(b"<")[0]
            asks = what.type in ("gnu_asm_expression", "call_expression") and _NAMED.search(text)
            if asks or (name and name in wrappers):
                found[text.decode("latin-1")] = None
    return [text for text in found if "\n" not in text][:_SPELLINGS]


def grid_barriers(syntax: Syntax) -> list[str]:
    """Return the source's own statements that synchronise the whole grid."""
    return _syncs(syntax, _GRIDS)


def lane_barriers(syntax: Syntax) -> list[str]:
    """Return statements at which lanes of a warp meet: of the source's tiles, and of all lanes."""
    return [*_syncs(syntax, _TILES), WARP_BARRIER]


def _syncs(syntax: Syntax, patterns: Sequence[bytes]) -> list[str]:
    text = b"\n".join(syntax.files.values())
    names = [name.decode("latin-1") for one in patterns for name in re.findall(one, text)]
    return [f"{name}.sync();" for name in dict.fromkeys(names)][:_SPELLINGS]


def ptx_remedies(case: str) -> list[str]:
    """Return PTX texts that may fix a case; empty if only a barrier may."""
    missing, shared = _REMEDIES.get(case, ((), False))
    codes = [f"{one.code};" for one in missing]
    return codes + [f"{code} bar.sync 0;" for code in codes[-1:] if shared]


def fixable(hazard: Hazard) -> bool:
    """Whether a statement might order its accesses, or let its threads go on."""
    if hazard.row.is_endless and hazard.involved:
        return True
    if hazard.case in ("steps", GUESS, OVERRUN):  # no order is missing
        return False
    if hazard.case in ("far", LEAVES):
        return hazard.severity == "error"
    if not hazard.row.is_race or len({item.block for item in hazard.involved}) != 1:
        return False
    return hazard.severity == "error" or (hazard.reach == "lane" and hazard.case != EQUAL)


def between_blocks(hazard: Hazard) -> bool:
    """Whether it is a race that no barrier of a block alone orders, but one of the grid may."""
    across = hazard.reach == "block" and hazard.space == "global"
    return hazard.row.is_race and across and (hazard.severity == "error" or hazard.case == FRESH)


def obstacle(tried: Sequence[tuple[str, int]]) -> str:
    """Return the sentence for a race that none of the tried statements fixes."""
    if not tried:
        return "no fix: the source alone does not determine which mbarrier and phase to wait for"
    return f"no fix: no {tried[-1][0].rstrip(';')} between two statements removes this race alone"


def no_barrier(hazard: Hazard, hazards: Sequence[Hazard]) -> str:
    """Return the sentence for a race that no barrier fixes; lost updates get advice."""
    name = "__syncwarp()" if hazard.reach == "lane" else "__syncthreads()"
    text = f"no fix: no {name} between two statements removes this race alone"
    return text + instead(hazard, hazards)


def instead(hazard: Hazard, hazards: Sequence[Hazard]) -> str:
    """Return the advice for a lost update; empty for another race."""
    every = [one for h in hazards for one in (h, *h.follows)]
    lost = any(h.case == "lost" and h.places >= hazard.places for h in every)
    return "; let one atomic operation read and write, as atomicAdd() does" * lost


def _wrappers(syntax: Syntax, ptx: re.Pattern[bytes]) -> Iterator[str]:
    """Yield calls of macros and functions that hold one such instruction and nothing else."""
    for root in syntax.roots.values():
        for node in descendants(root, {"preproc_function_def", "preproc_def"}):
            if _only(ptx, field_text(node, "value")):
                name, given = field_text(node, "name"), field_text(node, "parameters")
                call = (
                    b"" if node.type == "preproc_def" else b"(0)" if given.strip(b"() ") else b"()"
                )
                yield f"{(name + call).decode('latin-1')};"
        for node in descendants(root, {"function_definition"}):
            body = node.child_by_field_name("body")
            if body is not None and body.named_child_count == 1 and _only(ptx, body.text or b""):
                yield _call(node)


def _only(ptx: re.Pattern[bytes], text: bytes) -> bool:
    return bool(ptx.search(text)) and len(re.findall(rb"\basm\b|\b__asm__\b", text)) == 1


def _declarator(function: Node) -> Node | None:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator


def _name(function: Node) -> bytes:
    declarator = _declarator(function)
    return b"" if declarator is None else field_text(declarator, "declarator")


def _call(function: Node) -> str:
    declarator = _declarator(function)
    if declarator is None:
        return ""
    name = _name(function).decode("latin-1")
    template = function.parent is not None and function.parent.type == "template_declaration"
    given = field_text(declarator, "parameters").strip(b"() \t\r\n") not in (b"", b"void")
    return f"{name}{'<0>' if template else ''}({'0' if given else ''});"

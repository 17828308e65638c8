"""Source lines of a kernel, and the declarations before its first step."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

_HEAD = re.compile(r"__global__|\.entry")
_MAX_LINES = 120


def kernel_lines(
    watched: Sequence[dict[str, Any]], quiet: Sequence[bool], sources: Sequence[dict[str, Any]]
) -> dict[str, int] | None:
    """Return file, first and last line to show, the function's head, and the folded lines' number.

    Return ``None`` if no step has a readable source line.
    """
    steps = [
        (item["file"], item["source"])
        for item, still in zip(watched, quiet, strict=True)
        if not still and item["file"] >= 0
        if 0 < item["source"] <= len(sources[item["file"]]["lines"])  # .loc may name any line
    ]
    if not steps:
        return None
    file = Counter(number for number, _ in steps).most_common(1)[0][0]
    own = [line for number, line in steps if number == file]
    first, last = min(own), max(own)
    lines = sources[file]["lines"]
    head = first
    while head > 1 and not _HEAD.search(lines[head - 1]):
        head -= 1
    if not _HEAD.search(lines[head - 1]):
        head = first
    while last < len(lines) and not lines[last - 1].startswith("}"):
        if _HEAD.search(lines[last]):
            break  # the next kernel
        last += 1
    start = first
    while start > head + 1 and _is_inner(lines[start - 2]):
        start -= 1
    folded = start - head
    if folded < 3 or last - head < 12:
        start, folded = head, 0
    return {
        "file": file, "head": head, "from": start, "to": min(last, start + _MAX_LINES),
        "folded": folded,
    }  # fmt: skip


def _is_inner(line: str) -> bool:
    """Return whether a line before the first step heads a loop or declares its sum."""
    return bool(re.match(r"\s*(for|while|do)\b", line)) or bool(
        re.match(r"\s*(float|double|half|int|unsigned)\s+\w+\s*=\s*[\d.f-]+;", line)
    )

"""First words of a race's title: what is missing, refined by a verified fix."""

import re

from ..participants import Fix

BARRIER, FENCE, WAIT, RACE = "Missing barrier", "Missing fence", "Missing wait", "Race"
WARP_BARRIER = "Missing __syncwarp()"


def title_with_fix(title: str, fix: Fix | None) -> str:
    """Return the title with the statement that the verified fix inserts."""
    lead, _, rest = title.partition(": ")
    if fix is None or lead not in (BARRIER, WARP_BARRIER):
        return title
    if re.search(r"sync|bar", fix.text):
        return f"{BARRIER}: {rest}" if "__syncthreads" in fix.text else title
    for word, better in (("fence", FENCE), ("wait", WAIT)):
        if word in fix.text:
            return f"{better}: {rest}"
    return f"{RACE}: {rest}"

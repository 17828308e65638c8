"""Tables for notebooks."""

import html
from collections.abc import Iterable, Sequence


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return an HTML table; every text is escaped, as names come from the user's kernels."""
    lines = ["<table>"]
    if caption:
        lines.append(f"<caption>{html.escape(caption)}</caption>")
    lines.append(_row(head, "th"))
    lines += [_row([str(cell) for cell in row], "td") for row in rows]
    return "\n".join([*lines, "</table>"])


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

"""One page for several launches: a list of them, and the page of the one that is chosen.

What the pages have in common is in the file once; each is put together when it is chosen.
"""

import html
from collections.abc import Sequence

from kernels.source_access import display_path

from ..sessions.recorded_launch import RecordedLaunch
from ..text.report import clean
from .page import BUDGET, NoTrace, Shown, Story, parts, policy, rendered, to_json

_LEAST = 100_000
"""Characters for the numbers of one launch, however many there are."""
_STYLE = """
:root { color-scheme: light dark; font: 14px system-ui, sans-serif; }
body { margin: 0; display: grid; grid-template-rows: auto 1fr; height: 100vh; }
ol { margin: 0; padding: 4px 4px 4px 40px; max-height: 22vh; overflow: auto; }
button { font: inherit; text-align: left; border: 0; background: none; padding: 3px 6px; }
button[aria-current=true] { outline: 2px solid; }
.bad { font-weight: bold; }
iframe { border: 0; width: 100%; height: 100%; }
"""
_SCRIPT = """"use strict";
const { inner, pages } = JSON.parse(document.getElementById("pages").textContent);
const frame = document.querySelector("iframe");
const buttons = [...document.querySelectorAll("button[data-page]")];
function show(button) {
  const page = pages[Number(button.dataset.page)];
  frame.srcdoc = inner.replace("@data@", () => page.data).replace("@numbers@", () => page.numbers);
  for (const other of buttons) other.setAttribute("aria-current", String(other === button));
}
for (const button of buttons) button.addEventListener("click", () => show(button));
if (buttons.length) show(buttons[0]);
"""


def launches_page(launches: Sequence[RecordedLaunch]) -> Shown:
    """The page of all launches of a session; those that were recorded can be stepped through.

    Raises:
        NoTrace: None of them was recorded.
    """
    recorded = [launch for launch in launches if launch.run.trace is not None]
    if not recorded:
        raise NoTrace("no launch was recorded: launch with simulator.launch(..., trace=True)")
    budget = max(_LEAST, BUDGET // len(recorded))
    pages: list[dict[str, str]] = []
    rows = []
    for launch in launches:
        number = None
        if launch.run.trace is not None:
            number = len(pages)
            pages.append(parts([Story(launch.run, launch.kernel.name)], budget))
        rows.append(_row(launch, number))
    script, style, inner = rendered("launches", "@data@", "@numbers@")
    counted = f"{len(launches)} launch{'es' * (len(launches) != 1)}"
    content = to_json({"inner": inner, "pages": pages})
    return Shown(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="'
        f'{policy((script, _SCRIPT), (style, _STYLE))}">'
        f"<title>{counted} - tilescope</title><style>{_STYLE}</style></head><body>"
        f'<ol>{"".join(rows)}</ol><iframe title="the launch"></iframe>'
        f'<script type="application/json" id="pages">{content}</script>'
        f"<script>{_SCRIPT}</script></body></html>"
    )


def _row(launch: RecordedLaunch, page: int | None) -> str:
    run = launch.run
    count = len(run.hazards)
    said = f"{count} hazard{'s' * (count != 1)}" if count else clean(run)
    place = f"{display_path(launch.file)}:{launch.line}" if launch.file else ""
    shape = f"{'x'.join(map(str, run.grid))} blocks of {'x'.join(map(str, run.block))}"
    text = html.escape(f"{launch.kernel.name}  {place}  {shape}  ")
    text += f'<span class="{"bad" if count else ""}">{said}</span>'
    if page is None:
        return f"<li>{text} (not recorded)</li>"
    return f'<li><button data-page="{page}">{text}</button></li>'

"""Page of several launches: their timeline, and the page of the selected one.

The file has the script and styles once. Selecting a launch inserts its data into them.
"""

import html
from collections.abc import Sequence

from kernels.source_access import display_path

from ..sessions.recorded_launch import RecordedLaunch
from ..text.report import clean
from .page import BUDGET, NoTrace, Shown, Story, parts, policy, rendered, to_json

_LEAST = 100_000
"""Least characters for the numbers of one launch."""
_STYLE = """
:root { color-scheme: light dark; font: 13px system-ui, "DejaVu Sans", sans-serif;
  --page: #fff; --ink: #15181d; --mute: #596370; --line: #dde2e8; --cell: #e8ebef;
  --x0: #fde6ee; --x2: #b4004e; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1216; --ink: #eceff3; --mute: #a2acb8;
  --line: #2a313a; --cell: #252b33; --x0: #43102a; --x2: #ff93bb; } }
body { margin: 0; display: grid; grid-template-rows: auto 1fr; height: 100vh;
  background: var(--page); color: var(--ink); }
ol { list-style: none; margin: 0; padding: 8px 28px; display: flex; gap: 3px; overflow-x: auto;
  border-bottom: 1px solid var(--line); }
li { flex: var(--work) 1 0; min-width: 150px; max-width: 640px; padding: 7px 10px;
  border-radius: 6px; background: var(--cell); white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
li:has(button) { padding: 0; }
button { font: inherit; color: inherit; text-align: left; border: 0; background: none;
  padding: 7px 10px; width: 100%; height: 100%; cursor: pointer; overflow: hidden;
  text-overflow: ellipsis; }
button[aria-current=true] { background: var(--ink); color: var(--page); }
li:has(.bad) { box-shadow: inset 0 -4px var(--x2); }
.bad { font-weight: bold; color: var(--x2); }
button[aria-current=true] .bad { color: inherit; }
b, small { display: block; overflow: hidden; text-overflow: ellipsis; }
h1 { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden;
  clip-path: inset(50%); }
main { min-height: 0; }
iframe { border: 0; width: 100%; height: 100%; display: block; }
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
for (const button of buttons) {
  button.parentElement.style.setProperty("--work", button.dataset.work);
  button.addEventListener("click", () => show(button));
}
if (buttons.length) show(buttons[0]);
"""


def launches_page(launches: Sequence[RecordedLaunch]) -> Shown:
    """Return the page of all launches of a session. Recorded launches have steps.

    Raises:
        NoTrace: No launch was recorded.
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
        f'<nav aria-label="launches"><h1>{counted}</h1><ol>{"".join(rows)}</ol></nav>'
        f'<main><iframe title="the launch"></iframe></main>'
        f'<script type="application/json" id="pages">{content}</script>'
        f"<script>{_SCRIPT}</script></body></html>"
    )


def _row(launch: RecordedLaunch, page: int | None) -> str:
    run = launch.run
    count = len(run.hazards)
    work = max(1, run.counters.warp_instructions)
    said = f"{count} hazard{'s' * (count != 1)}" if count else clean(run)
    place = f"{display_path(launch.file)}:{launch.line}" if launch.file else ""
    shape = f"{'x'.join(map(str, run.grid))} blocks of {'x'.join(map(str, run.block))}"
    text = f"<b>{html.escape(launch.kernel.name)}</b>"
    text += f"<small>{html.escape(' '.join(filter(None, (place, shape))))}</small>"
    text += f'<small class="{"bad" if count else ""}">{said}</small>'
    if page is None:
        return f"<li>{text}<small>(not recorded)</small></li>"
    return f'<li><button data-page="{page}" data-work="{work}">{text}</button></li>'

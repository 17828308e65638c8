"""HTML page of a recorded run: ``tilescope view`` and ``run.show()``."""

from simulator.run import set_page_renderer

from .page import NoTrace, Shown, Story, hazard_blocks, page, show

__all__ = ["NoTrace", "Shown", "Story", "hazard_blocks", "page", "show"]

set_page_renderer(show)

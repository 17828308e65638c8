"""The page that shows a run: ``tilescope view`` and ``run.show()``."""

from .page import NoTrace, Shown, Story, page, show

__all__ = ["NoTrace", "Shown", "Story", "page", "show"]

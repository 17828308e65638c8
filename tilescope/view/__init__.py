"""The page that shows a run: ``tilescope view`` and ``run.show()``."""

from __future__ import annotations

from .notebook import Shown, show
from .page import NoTrace, Story, page

__all__ = ["NoTrace", "Shown", "Story", "page", "show"]

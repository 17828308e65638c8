"""Interactive search for fixes, after the findings have been printed."""

from collections.abc import Callable

from simulator import Hazard
from simulator.fixes import Stopped, Watch

from ..cli.progress import SearchBar
from .checker import Checker, Verdict


class Search(Watch):
    """Displays a search for fixes; Ctrl-C or a closed output ends it.

    Args:
        bar: The progress bar.
        seconds: As for ``Watch``.
        needless: Whether the results are no longer needed.
    """

    stops = (Stopped, KeyboardInterrupt)

    def __init__(self, bar: SearchBar, seconds: float | None, needless: Callable[[], bool]) -> None:
        super().__init__(seconds)
        self._bar, self._needless = bar, needless

    def trying(self, number: int, planned: int, hazard: Hazard) -> None:
        """See ``Watch``."""
        if self._needless():
            raise Stopped
        self._bar(number, planned)


def search(
    checker: Checker, verdict: Verdict, seconds: float | None, needless: Callable[[], bool]
) -> None:
    """Search fixes for the hazards of a verdict; its findings have been printed already."""
    if needless():
        return
    with SearchBar(checker.launcher.quiet, checker.launcher.began) as bar:
        checker.find_fixes(verdict, Search(bar, seconds, needless))

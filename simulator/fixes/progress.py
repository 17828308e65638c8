"""Progress of a search for fixes, its interruption, and why it ended early."""

from ..hazards.hazard import Hazard

BUDGET, TIME, INTERRUPTED = "budget", "time", "interrupted"
ENDED = {
    BUDGET: "no fix found within the search's budget",
    TIME: "no fix found within the time given",
    INTERRUPTED: "no fix found before the search was interrupted",
}
"""Why a search ended before all was tried: what is said of a hazard then."""


class Stopped(Exception):
    """The search was stopped; its results remain."""


class Watch:
    """Observer of a search for fixes; a subclass displays its progress.

    Args:
        seconds: Time limit of the search, besides its budget.

    Attributes:
        tried: Number of edits tried so far.
        stops: Exceptions that end the search and preserve its results; others propagate.
        ended: Key of ``ENDED`` if the search ended early; else empty.
    """

    stops: tuple[type[BaseException], ...] = (Stopped,)

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.tried = 0
        self.ended = ""

    def attempt(self, number: int, planned: int, hazard: Hazard) -> None:
        """Announce the next edit for a hazard, out of about ``planned``.

        Raises:
            Stopped: The search is to end.
        """
        self.tried += 1
        self.trying(number, planned, hazard)

    def trying(self, number: int, planned: int, hazard: Hazard) -> None:
        """Display the attempt; may raise what ``attempt`` does."""

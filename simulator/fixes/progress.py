"""What follows a search for fixes: how far it is, when it is to stop, and why it ended early."""

from ..hazards.hazard import Hazard

BUDGET, TIME, INTERRUPTED = "budget", "time", "interrupted"
ENDED = {
    BUDGET: "no fix found within the search's budget",
    TIME: "no fix found within the time given",
    INTERRUPTED: "no fix found before the search was interrupted",
}
"""Why a search ended before all was tried: what is said of a hazard then."""


class Stopped(Exception):
    """Nobody waits for the search any longer; what it has found stays."""


class Watch:
    """Follows a search for fixes; a subclass shows it to somebody who waits.

    Args:
        seconds: A limit besides the search's budget, from its beginning.

    Attributes:
        tried: Edits that were tried.
        stops: What ends the search and leaves what it has found; all else goes through.
        ended: Why the search ended before all was tried, a key of ``ENDED``; empty: it did not.
    """

    stops: tuple[type[BaseException], ...] = (Stopped,)

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.tried = 0
        self.ended = ""

    def attempt(self, number: int, planned: int, hazard: Hazard) -> None:
        """The next edit for a hazard is to be tried, one of about so many.

        Raises:
            Stopped: It is not.
        """
        self.tried += 1
        self.trying(number, planned, hazard)

    def trying(self, number: int, planned: int, hazard: Hazard) -> None:
        """Show it; ``attempt`` says what it may raise."""

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
        """The next edit for a hazard is to be tried, one of about so many.

        Raises:
            Stopped: It is not.
        """
        self.tried += 1
        self.trying(number, planned, hazard)

    def trying(self, number: int, planned: int, hazard: Hazard) -> None:
        """Show it; ``attempt`` says what it may raise."""

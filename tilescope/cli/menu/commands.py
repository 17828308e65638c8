"""The commands by intent, with a line each; none is imported before it is used."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MenuEntry:
    """A command in the menu.

    Attributes:
        name: Its word on the command line, and its modules in ``tilescope.usage`` and
            ``tilescope.commands``.
        summary: One sentence: the first line of its help.
        hidden: Whether ``--help`` leaves it out.
    """

    name: str
    summary: str
    hidden: bool = False

    @property
    def module(self) -> str:
        """The module's name."""
        return self.name.strip("_")


MENU = {
    "Look at a kernel": (
        MenuEntry("run", "Run a kernel and report its memory traffic."),
        MenuEntry(
            "view", "Run a kernel and draw what happened: one HTML file that opens from disk."
        ),
        MenuEntry("predict", "Say how long kernels would take on a GPU, and what limits them."),
    ),
    "Find bugs": (
        MenuEntry("check", "Look for races, wrong barriers and bad memory accesses."),
        MenuEntry("barriers", "Take out each barrier in turn, and say what goes wrong."),
        MenuEntry(
            "exec", "Run a Python script or a CUDA program with its kernels on the simulator."
        ),
    ),
    "Run many": (
        MenuEntry(
            "sweep",
            "Run or predict kernels at every size, with every tile, GPU, schedule and seed.",
        ),
    ),
    "With a GPU at hand": (
        MenuEntry("validate", "Hold the simulator to a GPU, bit for bit, and both to NumPy."),
        MenuEntry("time", "Time kernels on a GPU: median of many launches, GFLOP/s."),
        MenuEntry("counters", "Hold the simulator's counters to Nsight Compute's."),
    ),
    "More": (
        MenuEntry("list", "Show the kernels of the library, one line each, or those of a FILE."),
        MenuEntry("init", "Write a kernel, tests of it and a CI recipe to start from."),
        MenuEntry("ptx", "Show the PTX of a kernel, or the steps the simulator takes for it."),
        MenuEntry("help", "Explain a command, a kind of hazard, or a word of the reports."),
        MenuEntry("_launch", "Launch on the GPU, for tilescope counters.", hidden=True),
    ),
}
"""Titles, and the commands under each."""
ENTRIES = {entry.name: entry for entries in MENU.values() for entry in entries}
EXIT_CODES = (
    ("0", "It ran, and nothing is wrong."),
    ("1", "A hazard, or a wrong result."),
    ("2", "It could not run; stderr says why."),
    ("3", "Of exec: nothing was launched."),
    ("130, 141", "Interrupted; the reader of a pipe has gone."),
    ("others", "Of exec: the program's own, or 128 + n if signal n ended it."),
)
"""What each exit code says."""

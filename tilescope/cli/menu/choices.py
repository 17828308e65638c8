"""Choices and defaults of options; imports nothing, as ``--help`` is quick."""

CHOICES = ("error", "warning", "ignore")
"""What a policy may say."""
SORTS = ("cost", "instr", "sectors", "waves", "line")
"""What lines are sorted by: cycles, one of the three that take them, or the source's order."""
CLOSE = "1e-5,1e-8"
"""Relative and absolute tolerance of results, where ``--close`` gives none."""
STEP_LIMIT = 50_000_000
"""Basic blocks that a batch of blocks runs before it is given up as endless."""
ENGINES = ("auto", "numpy", "native")
"""What may run the blocks; the first is the default."""

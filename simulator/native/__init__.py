"""Native engine: launches of few threads as machine code, by LLVM (extra ``tilescope[fast]``).

The NumPy engine defines every result and alone reports hazards. Native code either gives the same
results and counters and has surely nothing to report, or it gives up and the launch runs in NumPy:
see ``docs/native.md``.
"""

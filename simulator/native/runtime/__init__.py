"""Runtime of native code, in Python that ``translate`` makes LLVM IR of."""

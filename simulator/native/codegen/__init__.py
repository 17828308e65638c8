"""LLVM IR of kernels: lanes, loops over lanes, basic blocks and how they end."""

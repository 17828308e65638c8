"""PyTorch's C++ extensions: ``load_inline`` and ``load`` under ``tilescope exec``."""

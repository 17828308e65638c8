"""NVRTC in a process of its own, its headers and its log."""

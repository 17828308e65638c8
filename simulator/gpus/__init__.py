"""GPUs by name, and how much of a launch fits on a multiprocessor; needs no GPU."""

"""Arrays, their layout, the heap, and state of module variables."""

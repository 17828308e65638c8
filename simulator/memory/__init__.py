"""Memory: variable layout, array contents, and address resolution of accesses."""

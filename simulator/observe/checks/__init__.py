"""Small checks: uninitialised values, read-only path, wgmma registers."""

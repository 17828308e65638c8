"""Command line: options, targets, errors, progress."""

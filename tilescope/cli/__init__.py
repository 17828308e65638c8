"""The command line: options, targets, errors, progress."""

"""Reports as plain text of at most 80 columns."""

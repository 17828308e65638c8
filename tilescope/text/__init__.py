"""Reports as plain text of 80 columns."""

"""One file for each kind of edit that may fix a hazard."""

"""From an address to an array, its bounds and its provenance."""

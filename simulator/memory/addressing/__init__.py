"""Address resolution: arrays, bounds and provenance."""

"""Hardware counters: requests, sectors, wavefronts, instructions."""

"""Counters: requests, sectors, wavefronts, instructions."""

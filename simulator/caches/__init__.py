"""What of a launch's traffic reaches L1, L2 and DRAM."""

"""Cache models: which traffic of a launch reaches L1, L2 and DRAM."""

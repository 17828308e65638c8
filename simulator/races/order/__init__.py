"""Vector clocks: which accesses happen before which."""

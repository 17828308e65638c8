"""The lockstep machine: active masks, scheduling, calls and synchronisation."""

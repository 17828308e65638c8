"""Race detection: accesses that conflict and are not ordered by happens-before."""

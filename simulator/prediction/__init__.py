"""Performance prediction: time and limiter of a launch on a named GPU."""

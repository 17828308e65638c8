"""The trace of a launch, step by step."""

"""Stand-ins for the functions of the CUDA runtime API, by subject."""

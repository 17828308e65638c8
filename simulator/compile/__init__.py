"""PTX to Python: control flow, liveness, and the functions that blocks become."""

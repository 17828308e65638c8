"""Rules about the tree itself: imports, names, sizes, and what an installation contains."""

"""Old defects and hand-made mutants, each a small patch, and the net that has to find it."""

"""Story of a run, counted from its trace: beats, phases, layout and the title sentence."""

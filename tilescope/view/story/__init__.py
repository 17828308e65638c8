"""The run as a story: beats, phases, layout, and the sentence on top, counted from the trace."""

"""Program analyses: data flow, control dependence, aliasing, taint."""

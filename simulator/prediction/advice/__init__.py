"""Advice: changes that would make a launch faster, one rule for each defect."""

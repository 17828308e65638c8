"""What the command line shows of itself: commands by intent, options by subject, found files."""

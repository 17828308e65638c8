"""Help texts of the command line: commands by intent, options by subject, found files."""

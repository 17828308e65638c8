"""What a program does with values, before and after it runs: what decides on what."""

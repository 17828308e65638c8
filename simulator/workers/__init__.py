"""A launch on several cores: its blocks shared out among processes."""

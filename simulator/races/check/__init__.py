"""Race checks: each access against happens-before and shadow memory."""

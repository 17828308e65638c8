"""``check``: builds, results, policy, fixes."""

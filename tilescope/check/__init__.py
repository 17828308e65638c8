"""``check``: builds, comparison of results, policy, and fixes."""

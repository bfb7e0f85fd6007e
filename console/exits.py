"""The exit statuses of every `gpumend` command: one meaning each, in one place."""

OK = 0
"""Did as asked."""
FOUND = 1
"""Ran, and found something wrong."""
USAGE = 2
"""Bad usage or bad input."""
UNREACHABLE = 3
"""Something it needs could not be reached."""

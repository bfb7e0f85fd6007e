"""Judges a run by the API server's audit log alone, and shares no code with what it judges.

So names of taints, marks and users are written down here a second time, on purpose: a mistake in
the engine's vocabulary must not be repeated by its judge. Only the standard library.
"""

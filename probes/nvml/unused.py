"""Stands in for `ctypes.util` in the child that asks NVML.

The binding imports it for a function that it never calls, and with it come subprocess, tempfile and
shutil: a sixth of the child's time. Not for any other process.
"""


def find_library(name: str) -> str | None:
    """Find nothing; a binding that begins to ask goes on by the library's own name."""
    del name
    return None

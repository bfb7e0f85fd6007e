"""Load a library of the host's driver by its path, in the child that needs it.

Not by a search path: the folders that hold the driver's libraries hold the host's libc too, and a
process of another image that finds that one does not even start. What asks for the library by its
name later is given the one that is loaded.
"""

import ctypes
import os
from contextlib import suppress

PLACES = "GPUMEND_LIBRARIES"
"""Environment: folders where it may be, joined by colons."""
NVML, CUDA = "libnvidia-ml.so.1", "libcuda.so.1"


def preload(name: str, places: str | None = None) -> str | None:
    """Load it from the first folder from which it can be; None leaves it to the system's own."""
    known = os.environ.get(PLACES, "") if places is None else places
    for place in filter(None, known.split(":")):
        library = os.path.join(place, name)
        with suppress(OSError):
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
            return library
    return None

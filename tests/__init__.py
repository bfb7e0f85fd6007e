"""Bytecode is kept, also where the surroundings say otherwise: a run of the tests starts hundreds
of Python processes, and without it each compiles the same clients of Temporal and Kubernetes anew.
"""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

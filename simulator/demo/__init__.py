"""The demo: a small fleet that breaks by a script, repaired by the engine in its own processes.

`run.py` is the way through; every other module does one thing for it.
"""

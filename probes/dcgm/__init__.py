"""What DCGM says, asked through `dcgmi` of an engine that somebody else runs.

We never start an engine: several of them deadlock the driver. What the words mean for this node is
judged by `probes/checks/dcgm.py` and `dcgm_diag.py`, not here.
"""

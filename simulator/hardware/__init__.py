"""GPU machines that break on purpose: a directory that looks like a machine's `/`.

Real probes read it and real steps act on it. What heals a fault is the fault's own nature, kept
outside the directory; nothing that a verify reads says "healthy". Only the standard library here,
since the machine's tools (`nvidia-smi`, `systemctl`) must start fast.
"""

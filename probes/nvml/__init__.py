"""What NVML says of this machine's GPUs, asked in a disposable child and read as one view.

The agent never loads a GPU library: `child` is the only module that imports one, and it runs in a
process of its own. What the values mean is judged by the checks (`probes/checks/`), not here.
"""

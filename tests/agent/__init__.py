"""The agent of a node: log followed, faults kept, conditions published."""

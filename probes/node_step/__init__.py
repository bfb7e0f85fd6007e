"""Steps on the node itself, as a pinned Pod runs them: `verify`, `reset_gpu`, `reboot`.

`premise` is what every step checks before it acts.
"""

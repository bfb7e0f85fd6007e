"""The agent of a node: what it remembers, what it concludes, what it publishes.

`core` concludes, `memory` keeps it over a restart, `conditions` words it, `publish` and `api` tell
the API server, `senses` asks the machine where the log is not enough, `run` holds the threads.
"""

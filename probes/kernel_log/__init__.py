"""The kernel log as evidence: lines in, readings out.

`framing` takes the wrapping off, `xid`, `nvlink5`, `sxid`, `nvrm`, `pcie`, `nic` and `host` each
read one family of messages, `memory` adds what earlier lines of the same boot say, `storm` knows
the lines that repeat, `read` puts them together, `collapse` counts. Following `/dev/kmsg` and
keeping faults is the agent's.
"""

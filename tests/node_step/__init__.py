"""Steps on the node, and the checks and children that they rest on."""

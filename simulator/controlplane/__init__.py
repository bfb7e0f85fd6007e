"""A real Kubernetes control plane on loopback: built once, cached, started for tests."""

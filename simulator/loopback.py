"""Addresses of this machine for servers that run side by side; nothing here leaves loopback."""

import socket


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

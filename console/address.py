"""Addresses on the command line: HOST:PORT, where something of ours listens."""

import argparse

LAST_PORT = 65_535


def host_and_port(text: str) -> tuple[str, int]:
    """`127.0.0.1:9464` or `[::1]:9464`; ValueError for anything else. Port 0 takes a free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > LAST_PORT:
        raise ValueError(f"HOST:PORT, as 127.0.0.1:9464, not {text!r}")
    return host.strip("[]"), int(port)


def address(text: str) -> str:
    """A type of arguments: `text`, if it is an address."""
    try:
        host_and_port(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem
    return text

"""How a tool misbehaves before it answers, by one word of its state file. Standard library only."""

import os
import signal
import subprocess
import time


def behave(how: str, half: str = "") -> None:
    """hang; half: an answer cut short, then a hang; deaf: a hang that ignores TERM; child: a
    grandchild that keeps the pipes open; tidy: ends in order when asked to."""
    if how == "child":
        subprocess.Popen(["sleep", "60"])
    elif how == "half":
        print(half, end="", flush=True)
    elif how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif how == "tidy":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if how in ("hang", "half", "deaf", "tidy"):
        print("", flush=True)
        time.sleep(60)

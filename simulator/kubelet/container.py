"""Runs a container's command for real, on the machine's directory in place of the host's `/`."""

import asyncio
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MESSAGE_BYTES = 4_096
"""A termination message longer than this is cut by the kubelet."""
START_ERROR = 128
KILLED = 137

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where paths inside the container lie outside: mount point to place, longest first."""

    places: tuple[tuple[str, Path], ...]

    def outside(self, text: str) -> str:
        """A path, or `--option=path`, as it is outside; everything else as it was."""
        option, equals, value = text.partition("=")
        if equals and option.startswith("--"):
            return f"{option}={self.outside(value)}"
        for point, place in self.places:
            if text == point or text.startswith(point.rstrip("/") + "/"):
                return str(place) + text[len(point.rstrip("/")) :]
        return text


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended."""

    exit_code: int
    message: str
    started: datetime
    finished: datetime
    reason: str = ""


def mounts_host(pod: Mapping[str, Any]) -> bool:
    """Whether the pod sees the host's own root, and so really has to run."""
    volumes = pod["spec"].get("volumes") or ()
    return any((volume.get("hostPath") or {}).get("path") == "/" for volume in volumes)


def projected_token(pod: Mapping[str, Any]) -> str:
    """The volume that brings the token of the pod's service account; empty where none does."""
    for volume in pod["spec"].get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        if any("serviceAccountToken" in source for source in sources):
            return str(volume["name"])
    return ""


def mounts_of(pod: Mapping[str, Any], root: Path, scratch: Path) -> Mounts:
    """The mounts of a pod's container on a machine with this `root`; `scratch` is the pod's own."""
    spec = pod["spec"]
    container = spec["containers"][0]
    paths = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in spec.get("volumes") or ()
        if "hostPath" in volume
    }
    places = [
        (mount["mountPath"], root / paths[mount["name"]].lstrip("/"))
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in paths
    ]
    places.append((_message_path(container), scratch / "termination-log"))
    projected = projected_token(pod)
    places += [
        (mount["mountPath"], scratch / mount["name"])
        for mount in container.get("volumeMounts") or ()
        if mount["name"] == projected
    ]
    return Mounts(tuple(sorted(places, key=lambda place: -len(place[0]))))


class Container:
    """One run of a pod's container."""

    def __init__(self, pod: Mapping[str, Any], root: Path, scratch: Path) -> None:
        """`root` is the machine's `/`; `scratch` keeps the pod's log and termination message."""
        self._spec = pod["spec"]["containers"][0]
        self._node = pod["spec"]["nodeName"]
        self._mounts = mounts_of(pod, root, scratch)
        self._scratch = scratch
        self._process: asyncio.subprocess.Process | None = None

    async def run(self) -> Ended:
        """Run to the end, whoever ends it; cancelled, it leaves no process behind."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        message = self._scratch / "termination-log"
        message.write_bytes(b"")
        started = datetime.now(UTC)
        try:
            with (self._scratch / "log").open("ab") as log:
                self._process = await self._begun(log.fileno())
            (self._scratch / "pid").write_text(str(self._process.pid))
            status = await self._process.wait()
        except OSError as error:
            return Ended(START_ERROR, str(error), started, datetime.now(UTC), "StartError")
        finally:
            await self._put_away()
        text = message.read_bytes()[:MESSAGE_BYTES].decode(errors="replace")
        code = status if status >= 0 else 128 - status
        return Ended(code, text, started, datetime.now(UTC))

    def terminate(self) -> None:
        """Ask it to end, as the kubelet does at the start of the grace period."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and what it started, if anything still runs."""
        self._signal(signal.SIGKILL)

    async def _put_away(self) -> None:
        """Kill what still runs, and wait until it is gone: a loop must not close over a child."""
        self.kill()
        if self._process:
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process and self._process.returncode is None:
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                return

    async def _begun(self, log: int) -> asyncio.subprocess.Process:
        """A cancel that comes while it starts waits until there is something to put away."""
        starting = asyncio.ensure_future(self._start(log))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._process = await starting
            raise

    async def _start(self, log: int) -> asyncio.subprocess.Process:
        command = [*(self._spec.get("command") or ()), *(self._spec.get("args") or ())]
        argv = _program([self._mounts.outside(each) for each in command])
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=self._environment(),
            cwd=self._scratch,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def _environment(self) -> dict[str, str]:
        given = {
            each["name"]: self._mounts.outside(each["value"])
            if "value" in each
            else self._field(each)
            for each in self._spec.get("env") or ()
        }
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return {**kept, "GPUMEND_HOST_EXEC": "", **given}

    def _field(self, variable: Mapping[str, Any]) -> str:
        reference = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        return str(self._node) if reference == "spec.nodeName" else ""


def die_with_parent() -> None:
    """In a child before exec: no container outlives the process that plays its machine."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _message_path(container: Mapping[str, Any]) -> str:
    return str(container.get("terminationMessagePath") or "/dev/termination-log")


def _program(argv: Sequence[str]) -> list[str]:
    """`gpumend` is the one that is installed beside this interpreter."""
    if not argv:
        raise OSError("the container has no command")
    if argv[0] != "gpumend":
        return list(argv)
    beside = Path(sys.executable).with_name("gpumend")
    found = str(beside) if beside.exists() else shutil.which("gpumend")
    return [found, *argv[1:]] if found else [sys.executable, "-m", "console.main", *argv[1:]]

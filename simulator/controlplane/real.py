"""Starts a real etcd and kube-apiserver on loopback, for tests and for the end-to-end run.

There is no controller-manager and no scheduler: no default service accounts (the ServiceAccount
admission is switched off, so that pods can be created), no PDB controller, no garbage collector.
Building the programs is in `build.py`.
"""

import asyncio
import contextlib
import json
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import aiohttp

from simulator.controlplane.endpoint import ADMIN, Endpoint
from simulator.controlplane.programs import PROGRAMS, missing
from simulator.loopback import free_port

READY_WITHIN_S = 90.0
STOP_WITHIN_S = 15.0
POLL_S = 0.1

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "RequestResponse"},
    ],
}


class ControlPlaneError(Exception):
    """The control plane could not be started; the message says why."""


class RealControlPlane:
    """A real control plane as an async context manager; `endpoint` says how to reach it.

    State lives in `directory`, a new temporary one by default, which is removed at the end.
    """

    def __init__(
        self,
        directory: Path | None = None,
        namespaces: tuple[str, ...] = ("gpumend",),
        users: Mapping[str, str] | None = None,
    ):
        """`users` maps further users to their group; each gets a token in `endpoint.tokens`."""
        self._groups = {ADMIN: "system:masters", **(users or {})}
        self._own = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="gpumend-controlplane-"))
        self._namespaces = namespaces
        self._processes: list[subprocess.Popen[bytes]] = []
        self.etcd_url = f"http://127.0.0.1:{free_port()}"
        self._peer_url = f"http://127.0.0.1:{free_port()}"
        self._port = free_port()
        self.endpoint = Endpoint(
            url=f"https://127.0.0.1:{self._port}",
            ca=self.directory / "certs" / "apiserver.crt",
            tokens={user: secrets.token_hex(16) for user in self._groups},
            audit=self.directory / "audit.log",
        )

    async def __aenter__(self) -> Self:
        if absent := missing():
            raise ControlPlaneError(f"{', '.join(absent)} not built: run `uv run poe controlplane`")
        with contextlib.ExitStack() as unless_started:
            unless_started.callback(self.stop)
            await self._start()
            unless_started.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    async def _start(self) -> None:
        self._write_files()
        self._spawn("etcd", self._etcd_flags())
        self._spawn("kube-apiserver", self._apiserver_flags())
        await self._until_ready()
        async with self._client() as client:
            for name in self._namespaces:
                await _create_namespace(client, name)

    def stop(self) -> None:
        """End both programs, the API server first."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        if self._own:
            shutil.rmtree(self.directory, ignore_errors=True)

    async def compact(self) -> None:
        """Make etcd forget the history up to now (continue tokens before it expire)."""
        async with aiohttp.ClientSession(self.etcd_url) as client:
            async with client.post("/v3/kv/range", json={"key": "AA=="}) as answer:
                revision = (await answer.json())["header"]["revision"]
            body = {"revision": revision, "physical": True}
            async with client.post("/v3/kv/compaction", json=body) as answer:
                answer.raise_for_status()

    def _write_files(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        tokens = self.directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(
            "".join(
                f'{token},{user},{user},"{self._groups[user]}"\n'
                for user, token in self.endpoint.tokens.items()
            )
        )
        (self.directory / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        key = self.directory / "service-account.key"
        command = ["openssl", "genrsa", "-out", str(key), "2048"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603

    def _etcd_flags(self) -> list[str]:
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster=default={self._peer_url}",
            "--unsafe-no-fsync",
        ]

    def _apiserver_flags(self) -> list[str]:
        key = self.directory / "service-account.key"
        return [
            f"--etcd-servers={self.etcd_url}",
            f"--cert-dir={self.directory / 'certs'}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",  # as on every GPU cluster: our steps are privileged
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",  # the agent and the steps on nodes are
            "--enable-admission-plugins=NodeRestriction",
            # Nobody makes default service accounts here, and nobody takes the not-ready taint off.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--runtime-config=api/all=true",
            # Else old pages come from memory, and no compaction would ever make a token expire.
            "--feature-gates=ListFromCacheSnapshot=false",
            f"--audit-policy-file={self.directory / 'audit-policy.json'}",
            f"--audit-log-path={self.endpoint.audit}",
            "--audit-log-mode=blocking",
        ]

    def _spawn(self, name: str, flags: list[str]) -> None:
        """In our own process group: what ends a test run as a whole ends these with it."""
        with (self.directory / f"{name}.log").open("wb") as log:
            command = [str(PROGRAMS[name].path), *flags]
            self._processes.append(
                subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
            )

    def _client(self) -> aiohttp.ClientSession:
        tls = self.endpoint.tls()
        return aiohttp.ClientSession(
            self.endpoint.url,
            headers=self.endpoint.headers(),
            connector=aiohttp.TCPConnector(ssl=tls) if tls else None,
        )

    async def _until_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            self._check_alive()
            if await self._ready():
                return
            await asyncio.sleep(POLL_S)
        raise ControlPlaneError(f"not ready in {READY_WITHIN_S:.0f} s:\n{self._tail()}")

    async def _ready(self) -> bool:
        assert self.endpoint.ca is not None
        if not self.endpoint.ca.exists():
            return False
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with self._client() as client, client.get("/readyz") as answer:
                return answer.status == 200
        return False

    def _check_alive(self) -> None:
        for process in self._processes:
            if process.poll() is not None:
                raise ControlPlaneError(f"a program ended at start:\n{self._tail()}")

    def _tail(self) -> str:
        logs = (self.directory / f"{name}.log" for name in PROGRAMS)
        lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()[-8:]]
        return "\n".join(lines)


async def _create_namespace(client: aiohttp.ClientSession, name: str) -> None:
    body = {"metadata": {"name": name}}
    async with client.post("/api/v1/namespaces", json=body) as answer:
        if answer.status not in (201, 409):
            raise ControlPlaneError(f"namespace {name}: {answer.status} {await answer.text()}")

"""Where the API server is and who we are to it: kubeconfig or service account, kept fresh.

Loading is left to `kubernetes.aio.config`, which knows exec plugins, OIDC and certificates. It
reads a kubeconfig's credentials once; here they are read again while the process lives.
"""

import asyncio
import logging
import os
import time
from pathlib import Path

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

_log = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
"""How often credentials are read again: bound tokens live an hour and rotate at 80 % of it."""


class NotConfigured(Exception):
    """No API server is configured, or its configuration cannot be read; says what to do."""


class Access:
    """A client configuration whose credentials stay valid."""

    def __init__(self, configuration: Configuration, kubeconfig: str | None) -> None:
        """`kubeconfig` None: the service account, which the client's own hook reads again."""
        self.configuration = configuration
        self._kubeconfig = kubeconfig
        self._fresh_until = time.monotonic() + REFRESH_SECONDS
        self._reading = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The value of the header, or None where the configuration has no token.

        Raises NotConfigured when the service account's token file is gone.
        """
        if self._kubeconfig and time.monotonic() >= self._fresh_until:
            await self.renew()
        try:
            settings = await self.configuration.auth_settings()
        except (ConfigException, OSError) as problem:
            raise NotConfigured(f"the Pod's service account cannot be used: {problem}") from problem
        bearer = settings.get("BearerToken")
        return str(bearer["value"]).strip() if bearer else None  # token files end in newlines

    async def renew(self) -> None:
        """Read the credentials again; one reader at a time, however many requests wait for it.

        A file that cannot be read now (somebody is writing it) leaves the old ones in force.
        """
        asked = time.monotonic()
        async with self._reading:
            if not self._kubeconfig or self._fresh_until >= asked + REFRESH_SECONDS:
                return
            try:
                await _load_file(self._kubeconfig, self.configuration)
            except NotConfigured as problem:
                _log.warning("event=credentials-not-renewed problem=%r", str(problem))
            self._fresh_until = time.monotonic() + REFRESH_SECONDS


async def load_access(kubeconfig: str | None = None) -> Access:
    """Take the named kubeconfig, else $KUBECONFIG, else the service account, else ~/.kube/config.

    Raises NotConfigured.
    """
    configuration = Configuration()
    path = kubeconfig or os.environ.get("KUBECONFIG")
    if not path and os.environ.get("KUBERNETES_SERVICE_HOST"):
        try:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (ConfigException, OSError) as problem:
            raise NotConfigured(f"the Pod's service account cannot be used: {problem}") from problem
        return Access(configuration, None)
    path = path or str(Path.home() / ".kube" / "config")
    await _load_file(path, configuration)
    return Access(configuration, path)


async def _load_file(path: str, configuration: Configuration) -> None:
    try:
        await load_kube_config(  # type: ignore[no-untyped-call]
            path, client_configuration=configuration, persist_config=False
        )
    except Exception as problem:  # the loader meets a bad file with whatever it trips over
        raise NotConfigured(
            f"kubeconfig {path} cannot be used ({_why(problem)});"
            " set KUBECONFIG, or run inside the cluster with a service account"
        ) from problem


def _why(problem: Exception) -> str:
    """What the loader tripped over means nothing to who wrote the file."""
    if isinstance(problem, ConfigException | OSError):
        return str(problem)
    return "it is not a kubeconfig, which is YAML with clusters, users and contexts"

"""Where a Kubernetes API is and who may call it; the same for the real one and the emulated one.

How the server behind it is built or started does not belong here.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One API server.

    `url` has no trailing slash; `ca` is a PEM bundle for https and None for http; `tokens` are
    bearer tokens by user name, `admin` always among them; `audit` is the file of audit events
    (audit.k8s.io/v1, one JSON object a line).
    """

    url: str
    ca: Path | None
    tokens: Mapping[str, str]
    audit: Path

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context that trusts this server, None for plain http."""
        return None if self.ca is None else ssl.create_default_context(cafile=str(self.ca))

    def headers(self, user: str = ADMIN) -> dict[str, str]:
        """Request headers that authenticate `user`."""
        return {"Authorization": f"Bearer {self.tokens[user]}"}

    def write_kubeconfig(
        self, path: Path, user: str = ADMIN, *, token: str | None = None, kubectl: bool = False
    ) -> Path:
        """Write a kubeconfig for `user` (with another token, if one is given); return its path.

        `kubectl`: for a person's kubectl, which sends no bearer token over plain http; the token
        is in the server's URL then. Programs take the other form.
        """
        token = token or self.tokens[user]
        cluster = {"server": self.url}
        credentials = {"token": token}
        if self.ca is not None:
            cluster["certificate-authority"] = str(self.ca)
        elif kubectl:
            cluster["server"] = self.url.replace("://", f"://{user}:{token}@")
            credentials = {}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "gpumend", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [
                {"name": "gpumend", "context": {"cluster": "gpumend", "user": user}},
            ],
            "current-context": "gpumend",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1) + "\n")
        return path


def read_tokens(path: Path) -> dict[str, str]:
    """Tokens by user name, from a static token file (`token,user,uid,"group,group"`)."""
    lines = (line.split(",", 2) for line in path.read_text().splitlines() if line.strip())
    return {user: token for token, user, _ in lines}

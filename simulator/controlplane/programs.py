"""The programs of a real control plane that we can build, and where they are cached.

One row a program. A scheduler or controller-manager is one row more; nothing else here changes.
Building is in `build.py`, starting in `real.py`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.37.2"
ETCD = "3.7.3"

VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Program:
    """One program built from the Go module proxy.

    `module` and `version` name the module; `package` is the main package inside it, or, where
    `main` is given, the source of a main package of our own that requires the module.
    """

    name: str
    module: str
    version: str
    package: str
    main: str = ""
    ldflags: str = "-s -w"

    @property
    def path(self) -> Path:
        """Where the built program is kept; it need not exist yet."""
        return cache_root() / f"{self.name}-{self.version.removeprefix('v')}" / self.name

    @property
    def built(self) -> bool:
        """Whether the program is in the cache."""
        return os.access(self.path, os.X_OK)


def _kubernetes(name: str) -> Program:
    return Program(
        name=name,
        module="k8s.io/kubernetes",
        version=f"v{KUBERNETES}",
        package=f"k8s.io/kubernetes/cmd/{name}",
        # Without it the server says v0.0.0-master+$Format…, which clients cannot parse.
        ldflags=f"-s -w -X {VERSION_PACKAGE}.gitVersion=v{KUBERNETES}"
        f" -X {VERSION_PACKAGE}.gitMajor=1 -X {VERSION_PACKAGE}.gitMinor=37",
    )


ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Program("etcd", "go.etcd.io/etcd/server/v3", f"v{ETCD}", ".", main=ETCD_MAIN),
        _kubernetes("kube-apiserver"),
    )
}


def cache_root() -> Path:
    """The folder of cached programs, outside every checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpumend" / "controlplane"


def missing() -> list[str]:
    """Names of the programs that are not in the cache."""
    return [name for name, program in PROGRAMS.items() if not program.built]

"""Builds a program of the control plane from the Go module proxy, once.

A throw-away module is made in a temporary folder beside the cache; the finished program is moved
into its place with one rename, so a build that was killed leaves nothing that looks finished.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from simulator.controlplane.programs import Program, cache_root

GO_MINIMUM = (1, 26)
BUILD_LIMIT_S = 3600
INSTALL_GO = (
    f"install Go >= {GO_MINIMUM[0]}.{GO_MINIMUM[1]} (https://go.dev/dl/), "
    "then: uv run poe controlplane"
)


class BuildError(Exception):
    """The program could not be built; the message says what to do."""


def build(program: Program) -> Path:
    """Build one program into the cache and return its path; nothing is done if it is there."""
    if program.built:
        return program.path
    go = find_go()
    cache_root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{program.name}-", dir=cache_root()) as folder:
        work = Path(folder)
        _write_module(go, program, work)
        _go(
            go,
            work,
            "build",
            "-trimpath",
            "-ldflags",
            program.ldflags,
            "-o",
            "out/",
            *_target(program),
        )
        _install(work / "out" / _built_name(program), program.path)
    return program.path


def find_go() -> str:
    """Path of a Go toolchain that is new enough."""
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"Go is missing: {INSTALL_GO}")
    found = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)  # noqa: S603
    match = re.match(r"go(\d+)\.(\d+)", found.stdout.strip())
    if match is None or (int(match[1]), int(match[2])) < GO_MINIMUM:
        raise BuildError(f"{go} is {found.stdout.strip() or 'of unknown version'}: {INSTALL_GO}")
    return go


def _target(program: Program) -> list[str]:
    return ["."] if program.main else [program.package]


def _built_name(program: Program) -> str:
    return "throwaway" if program.main else program.package.rsplit("/", 1)[-1]


def _write_module(go: str, program: Program, work: Path) -> None:
    lines = ["module throwaway", "", f"go {GO_MINIMUM[0]}.{GO_MINIMUM[1]}.0", ""]
    lines.append(f"require {program.module} {program.version}")
    if program.main:
        (work / "main.go").write_text(program.main)
    else:
        lines += _staging_replaces(go, program, work)
    (work / "go.mod").write_text("\n".join(lines) + "\n")


def _staging_replaces(go: str, program: Program, work: Path) -> list[str]:
    """`k8s.io/kubernetes` requires its staging modules at v0.0.0, which no proxy has.

    Each is published as v0.<minor>.<patch>. Requirements at v0.0.0-<date> are real versions.
    """
    (work / "go.mod").write_text("module throwaway\n")
    answer = _go(go, work, "mod", "download", "-json", f"{program.module}@{program.version}")
    go_mod = Path(json.loads(answer)["GoMod"]).read_text()
    staged = "v0." + program.version.removeprefix("v").split(".", 1)[1]
    names = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0(?:\s|$)", go_mod, re.MULTILINE)))
    return [f"replace {name} => {name} {staged}" for name in names]


def _go(go: str, work: Path, *arguments: str) -> str:
    command = [go, *arguments]
    done = subprocess.run(  # noqa: S603
        command,
        cwd=work,
        env=_environment(os.environ),
        capture_output=True,
        text=True,
        timeout=BUILD_LIMIT_S,
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise BuildError(f"{' '.join(command)} failed:\n{tail}")
    return done.stdout


def _environment(outer: Mapping[str, str]) -> dict[str, str]:
    flags = f"{outer.get('GOFLAGS', '')} -mod=mod -buildvcs=false".strip()
    return {**outer, "GOFLAGS": flags, "CGO_ENABLED": "0", "GOWORK": "off"}


def _install(built: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    built.chmod(0o755)
    built.replace(target)


def report(text: str) -> None:
    """A line of progress for a person."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()

"""Building the real programs: what is said when it can't be done, and what is left behind."""

import pytest

from simulator.controlplane.build import BuildError, build
from simulator.controlplane.programs import Program, cache_root

PROGRAM = Program("thing", "example.org/thing", "v1.2.3", ".", main="package main\n")


@pytest.fixture
def go(tmp_path, monkeypatch):
    """A stand-in for Go: a script that answers as it is told."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def answer(version, build="exit 1"):
        script = programs / "go"
        script.write_text(f'#!/bin/sh\nif [ "$1" = env ]; then echo {version}; exit; fi\n{build}\n')
        script.chmod(0o755)

    return answer


def test_without_go_it_says_what_to_install(go, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"install Go >= 1\.26 .* then: uv run poe controlplane"):
        build(PROGRAM)


def test_an_old_go_is_named(go):
    go("go1.21.3")
    with pytest.raises(BuildError, match=r"go1\.21\.3: install Go >= 1\.26"):
        build(PROGRAM)


def test_a_build_that_fails_says_why_and_leaves_nothing(go):
    go("go1.26.8", 'echo "no such module" >&2; exit 1')
    with pytest.raises(BuildError, match="no such module"):
        build(PROGRAM)
    assert not PROGRAM.built
    assert list(cache_root().iterdir()) == []


def test_a_program_is_built_once_and_kept_by_version(go):
    go("go1.26.8", "mkdir -p out && echo '#!/bin/sh' > out/throwaway")
    path = build(PROGRAM)
    assert path == cache_root() / "thing-1.2.3" / "thing"
    assert PROGRAM.built
    go("go1.26.8", "exit 1")
    assert build(PROGRAM) == path

"""`gpumend worker` as its manifest and its operator write it."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from console import main
from workflows.sandbox import keep_bytecode

ENGINE = Path(__file__).parents[2] / "deploy/engine.yaml"


class Became(Exception):
    """The process would have become another one."""


@pytest.fixture
def became(monkeypatch):
    def execv(_, argv):
        raise Became(*argv[1:])

    monkeypatch.setattr("os.execv", execv)

    def run(*arguments):
        with pytest.raises(Became) as found:
            main.main(["worker", *arguments])
        return found.value.args

    return run


def shipped():
    for each in yaml.safe_load_all(ENGINE.read_text()):
        if each["kind"] == "Deployment":
            yield from each["spec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize("container", tuple(shipped()), ids=lambda each: each["name"])
def test_the_flags_of_the_manifest_reach_the_worker(became, container):
    command, *flags = container["args"]
    assert command == "worker"
    assert f"--role={flags[1]}" in became(*flags)


def test_every_flag_reaches_the_worker(became):
    given = ("--role=watcher", "--cluster=c", "--policy=p.yaml", "--image=i", "--grace=3.0")
    assert became(*given) == ("-m", "worker", *given)


def test_a_worker_without_flags_goes_by_the_defaults(became):
    assert "--role=all" in became()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ROLE", "watchers", "one of incidents, watcher, all, not 'watchers'"),
        ("GRACE", "soon", "1 to 3600 seconds, not 'soon'"),
        ("GRACE", "nan", "1 to 3600 seconds, not 'nan'"),
        ("GRACE", "inf", "1 to 3600 seconds, not 'inf'"),
    ],
)
def test_a_setting_of_the_environment_that_makes_no_sense_is_bad_usage(
    monkeypatch, capsys, name, value, says
):
    monkeypatch.setenv(f"GPUMEND_{name}", value)
    with pytest.raises(SystemExit) as ended:
        main.main(["worker"])
    assert ended.value.code == 2
    assert re.search(re.escape(says), capsys.readouterr().err)


def test_workflow_code_is_compiled_once_also_where_an_image_keeps_no_bytecode(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    keep_bytecode()
    assert not sys.dont_write_bytecode

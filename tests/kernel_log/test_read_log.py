"""The command `gpumend read-log`, run as a user runs it."""

import json
import subprocess
import sys

from console.bench.read_log import FAULTS, storm
from probes.kernel_log.lines import MAX_LINE
from tests.kernel_log.test_cases import CASES, wanted

LOG = "\n".join(text for text, _ in CASES) + "\n"
KEYS = "line kind code pci dev mig class fault sev action link unit reason status recovery parent"


def read_log(*options, log=LOG):
    data = log if isinstance(log, bytes) else log.encode()
    command = [sys.executable, "-m", "console.main", "read-log", *options]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_plain_output_is_line_number_tab_reading():
    status, out, err = read_log("-")
    expected = [
        f"{number}\t{reading}"
        for number, (_, expected) in enumerate(CASES, 1)
        for reading in wanted(expected)
    ]
    assert (status, out.splitlines(), err) == (0, expected, "")


def test_all_prints_null_for_what_says_nothing_so_that_lines_pair_up():
    _, out, _ = read_log("-", "--all", "--json")
    values = [json.loads(line) for line in out.splitlines()]
    assert len(values) == len(CASES)
    for number, ((_, expected), value) in enumerate(zip(CASES, values, strict=True), 1):
        assert (value is None) == (wanted(expected) == [])
        assert value is None or value["line"] == number
    _, out, _ = read_log("-", "--all")
    assert [line.split("\t")[0] for line in out.splitlines()] == [
        str(number) for number in range(1, len(CASES) + 1)
    ]


def test_json_has_the_keys_of_the_contract_with_numbers_as_integers():
    _, out, _ = read_log("-", "--json")
    keys = [*KEYS.split(), "note"]
    for value in map(json.loads, out.splitlines()):
        assert list(value) == [key for key in keys if key in value]
        assert None not in value.values()
        for key in ("line", "mig", "link", "reason", "status", "recovery", "parent"):
            assert isinstance(value.get(key, 0), int)
        assert isinstance(value["code"], int) == (value["kind"] in ("xid", "sxid", "sxid_detail"))


def test_collapse_counts_each_distinct_fault_once(tmp_path):
    log = tmp_path / "storm.log"
    log.write_text("".join(storm(4_000)), encoding="utf-8")
    status, out, _ = read_log(str(log), "--collapse", "--json")
    values = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert len(values) == FAULTS
    assert sum(value["count"] for value in values) == 4_000
    assert all(value["first"] == value["line"] <= value["last"] for value in values)


def test_a_collapsed_log_adds_up_to_the_readings_of_the_whole_one():
    log = LOG * 3
    _, out, _ = read_log("-", "--json", log=log)
    _, collapsed, _ = read_log("-", "--json", "--collapse", log=log)
    assert sum(json.loads(line)["count"] for line in collapsed.splitlines()) == len(
        out.splitlines()
    )
    _, plain, _ = read_log("-", "--collapse", log=log)
    assert "count=3 first=12 last=180" in plain


def test_a_file_that_is_not_there_is_bad_input_said_on_standard_error(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        status, out, err = read_log(str(path), "--json")
        assert (status, out) == (2, "")
        assert str(path) in err


def test_a_reader_that_leaves_is_no_error(tmp_path):
    log = tmp_path / "storm.log"
    log.write_text("".join(storm(20_000)), encoding="utf-8")
    command = f"{sys.executable} -m console.main read-log {log} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_pieces_of_a_line_beyond_the_limit_have_its_number():
    heads = "NVRM: Xid (PCI:0000:52:00): 79, "
    log = "x" * (MAX_LINE - 10) + heads + "y" * (2 * MAX_LINE) + heads + "\n" + heads + "\n"
    _, out, _ = read_log("-", "--json", "--all", log=log)
    values = [json.loads(line) for line in out.splitlines()]
    assert [(value["line"], value["code"]) for value in values] == [(1, 79), (1, 79), (2, 79)]


def test_binary_input_is_read_to_its_end():
    log = bytes(range(256)) * 1000 + b"\nNVRM: Xid (PCI:0000:52:00): 79, GPU\n"
    status, out, _ = read_log("-", "--json", log=log)
    assert status == 0
    assert json.loads(out)["code"] == 79

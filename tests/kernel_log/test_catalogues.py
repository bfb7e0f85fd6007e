"""Generated lines for every code of both catalogues and every link rule agree with the tables."""

import pytest

from probes.kernel_log.read import read
from tests.kernel_log import lines

PROCESSES = (
    "",
    "pid=0, ",
    "pid=4242, ",
    "pid=4242, name=python3, ",
    "pid=4242, name=VLLM::Worker, ",
    "pid=4242, name=Web Content, x, ",
    "pid='<unknown>', name=<unknown>, ",
    "pid=<unknown>, ",
)


def one(text):
    (reading,) = read(text)
    return reading


def what(reading):
    return reading.class_, reading.sev, reading.action, reading.fault


def test_there_are_as_many_rows_as_the_tables_had():
    assert (len(lines.XIDS), len(lines.SXIDS), len(lines.RULES)) == (177, 420, 64)


@pytest.mark.parametrize("process", PROCESSES)
def test_every_xid_says_what_its_row_says_whoever_the_process_was(process):
    for row in lines.XIDS:
        if row["xid"] in lines.BY_TAIL:
            continue
        reading = one(lines.xid(row["xid"], "Ch 00000008, some text", process=process))
        assert (reading.kind, reading.code) == ("xid", int(row["xid"]))
        assert reading.pci == "0000:52:00"
        assert what(reading) == lines.xid_expected(row)


@pytest.mark.parametrize("word", ["Fatal", "Non-fatal", "Correctable"])
def test_every_sxid_follows_the_printed_word_and_then_its_row(word):
    for row in lines.SXIDS:
        reading = one(lines.sxid(row["sxid"], word))
        assert (reading.kind, reading.code, reading.link) == ("sxid", int(row["sxid"]), 32)
        assert reading.class_ == row["class"]
        assert (reading.sev, reading.action) == lines.sxid_expected(row, word)
        assert (reading.action == "none") == (reading.fault == "none")


def test_the_details_of_an_sxid_are_no_event():
    for row in lines.SXIDS:
        for tail in ("Severity 1 Engine instance 60 Sub-engine instance 00", "Data {0x1, 0x0}"):
            reading = one(f"nvidia-nvswitch0: SXid (PCI:0000:07:00.0): {row['sxid']}, {tail}")
            assert (reading.kind, reading.sev, reading.action, reading.fault) == (
                "sxid_detail", "info", "none", "none",
            )  # fmt: skip


@pytest.mark.parametrize("layout", [1, 2])
def test_every_link_rule_decides_by_unit_reason_and_status(layout):
    for rule in lines.RULES:
        for unit in (*rule["unit"].split("/"), rule["unit"]):
            for status in rule["error_status"].split():
                words = lines.link_words(rule, layout, status, link=3)
                reading = one(lines.link_line(rule, unit, words))
                assert (reading.sev, reading.action, reading.fault) == lines.link_expected(rule)
                assert (reading.unit, reading.link) == (unit, 3)
                assert reading.reason == int(rule["reason_bits_25_20"], 16)
                assert reading.status == int(status, 16)


@pytest.mark.parametrize("change", ["reason", "status"])
def test_a_link_error_in_no_row_holds(change):
    for rule in lines.RULES:
        status = "0x40000000" if change == "status" else rule["error_status"].split()[0]
        odd = rule | {"reason_bits_25_20": "0x3f"} if change == "reason" else rule
        words = lines.link_words(odd, 1, status, link=3)
        reading = one(lines.link_line(rule, rule["unit"].split("/")[0], words))
        assert what(reading) == ("nvlink", "degraded", "hold", "unknown-code")


def test_a_link_error_whose_name_and_number_name_different_units_holds():
    remap = next(rule for rule in lines.RULES if rule["unit"] == "RLW_REMAP")
    words = lines.link_words(remap, 1, "0x40", link=3)
    assert one(lines.link_line(remap, "RLW_REMAP", words)).action == "reset_gpu"
    assert one(lines.link_line(remap, "RLW_CTRL", words)).action == "hold"


@pytest.mark.parametrize("code", [0, 49152, 177, 199, 999])
def test_a_code_in_no_table_holds(code):
    assert what(one(lines.xid(code, "some text"))) == (
        "unknown", "unknown", "hold", "unknown-code",
    )  # fmt: skip


def test_an_sxid_in_no_table_holds_and_drains_when_the_switch_calls_it_fatal():
    assert what(one(lines.sxid(29999, "Non-fatal"))) == (
        "unknown", "degraded", "hold", "unknown-code",
    )  # fmt: skip
    assert what(one(lines.sxid(29999, "Fatal"))) == ("unknown", "fatal", "drain", "unknown-code")

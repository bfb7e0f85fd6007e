"""Kernel log lines made from the catalogues, and what the tables say about them.

Reads the CSV files on its own and repeats the rules of severity and action in its own words, so
that it can disagree with the reader.
"""

import csv
from importlib import resources

RISING = ["none", "hold", "drain", "reset_gpu", "reboot", "replace"]


def rows(name: str) -> list[dict[str, str]]:
    text = resources.files("probes.catalog").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


XIDS = rows("xid.csv")
SXIDS = rows("sxid.csv")
RULES = rows("nvlink5.csv")
BY_TAIL = {"154", *map(str, range(144, 151))}


def xid(code, tail="", pci="0000:52:00", process="pid=4242, name=python3, "):
    return f"NVRM: Xid (PCI:{pci}): {code}, {process}{tail}"


def xid_expected(row):
    sev, action = row["severity"], row["first_action"]
    if RISING.index(action) >= RISING.index("drain") and sev in ("unknown", "info", "warning"):
        sev = "degraded"
    return row["class"], sev, action, row["fault"]


def sxid(code, word, link=32):
    return f"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): {code}, {word}, Link {link:02} some error"


def sxid_expected(row, word):
    action = row["first_action"]
    if word == "Fatal":
        return "fatal", max(action, "drain", key=RISING.index)
    if word == "Non-fatal":
        return ("warning" if action == "none" else "degraded"), action
    return "info", "none"


def link_words(rule, layout, status, link):
    unit_bits = int(rule[f"unit_id_bits_layout{layout}"], 2)
    first = unit_bits | link << 13 | int(rule["reason_bits_25_20"], 16) << 20
    return f"(0x{first:08x} 0x{int(status, 16):08x} 0x00000000 0x00000000 0x00000000 0x00000000)"


def link_line(rule, unit, words, link=3):
    printed = "Nonfatal" if rule["severity_in_catalog"].startswith("Non") else "Fatal"
    return xid(rule["xid"], f"{unit} {printed} XC0 i0 Link {link:02} {words}")


def link_expected(rule):
    sev = {"none": "warning", "reset_gpu": "fatal"}.get(rule["first_action"], "degraded")
    return sev, rule["first_action"], "none" if rule["first_action"] == "none" else "nvlink-error"

"""Whatever happens to a line on its way: the head stays, and nothing raises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.kernel_log.read import MAX_MESSAGE, Reader, read
from tests.kernel_log import lines
from tests.kernel_log.test_cases import CASES

FRAMES = (
    "",
    "[31543.449443] ",
    "31543.449443] ",
    "[  +0.000844] ",
    "[ 1234.567890][ T1234] ",
    "[ 1234.567890] [T1234] ",
    "[Sun Aug 25 20:10:45 2024] ",
    "[dim. août 25 20:10:45 2024] ",
    "[日  8月 25 20:10:45 2024] ",
    "kern  :err   : 2025-01-25T10:34:54,859532+00:00 ",
    "kern  :warn  : [Sun Aug 25 20:10:45 2024] ",
    "10.0.0.7: kern: warning: [2026-04-22T21:27:51.291660856Z]: ",
    "Aug 25 20:10:45 node-7 kernel: [31543.449443] ",
    "Nov 29 20:10:45 node-7 kernel: ",
    "2026-11-29T12:03:11.123456+01:00 node-7 kernel: ",
    "3,1234,5678901234,-;",
    "4,1234,5678901234,-,caller=T1234;",
    "<4>[31543.449443] ",
    "\x1b[32m[31543.449443] \x1b[0m\x1b[33m",
    "#033[32m",
    "kernel: ",
)
GPUS = ("0000:01:00", "0000:0a:00", "0018:01:00", "10000:e1:00")
ANY = st.characters(exclude_categories=["Cs"])
# A name that the driver would print: 15 bytes at most, no head of a message in it.
NAMES = st.text(ANY, max_size=15).filter(lambda name: "NVRM" not in name and "\\" not in name)
CODES = [int(row["xid"]) for row in lines.XIDS]


def heads(readings):
    return [(reading.pci, reading.code) for reading in readings if reading.kind in ("xid", "sxid")]


@pytest.mark.parametrize("frame", FRAMES)
def test_no_frame_hides_a_line_or_changes_what_it_says(frame):
    for text, _ in CASES:
        bare = text.partition("NVRM: Xid")
        if bare[1]:
            line = "".join(bare[1:])
            assert read(frame + line) == read(line)


@pytest.mark.parametrize(
    "frame",
    [
        "12,1234,5678901234,-;",
        "30,1234,5678901234,-;",
        "user  :warn  : [31543.449443] ",
        "daemon:info  : 2025-01-25T10:34:54,859532+00:00 ",
        "10.0.0.7: user: warning: [2026-04-22T21:27:51.291660856Z]: ",
        "<12>",
    ],
)
def test_what_user_space_wrote_is_no_evidence(frame):
    for text, _ in CASES:
        assert read(frame + text) == ()


@given(
    code=st.sampled_from(CODES),
    gpu=st.sampled_from(GPUS),
    instance=st.none() | st.integers(0, 99),
    frame=st.sampled_from(FRAMES),
    pid=st.sampled_from(["", "pid=0, ", "pid='<unknown>', name=<unknown>, "])
    | st.builds("pid={}, name={}, ".format, st.integers(0, 1 << 22), NAMES),
    tail=st.text(ANY, max_size=60),
)
def test_the_head_survives_every_process_domain_and_tail(code, gpu, instance, frame, pid, tail):
    mig = "" if instance is None else f" GPU-I:{instance:02}"
    readings = read(f"{frame}NVRM: Xid (PCI:{gpu}{mig}): {code}, {pid}{tail}")
    assert heads(readings)[0] == (gpu, code)
    assert readings[0].mig == instance


@pytest.mark.parametrize("text", [text for text, _ in CASES if "Xid (" in text])
def test_a_cut_line_keeps_its_head_and_never_asks_for_more_than_a_hold(text):
    (whole,) = read(text)
    complete = text.index("): ") + len(f"): {whole.code}")
    for where in range(len(text)):
        cut = read(text[:where])
        if where >= complete:
            assert [(reading.pci, reading.code) for reading in cut] == [(whole.pci, whole.code)]
        for reading in cut:
            assert reading.action in ("none", "hold", "follow_recovery_action", whole.action)


@given(
    several=st.lists(st.sampled_from([text for text, _ in CASES if "Xid (" in text]), max_size=6),
    joint=st.sampled_from(["", " ", "\\x0a", "#012", "\r", "\n", " [  123.456789] "]),
)
def test_every_head_of_glued_lines_counts(several, joint):
    glued = joint.join(several)
    alone = [head for text in several for head in heads(read(text))]
    assert heads(read(glued)) == alone


@given(st.lists(st.text(ANY) | st.sampled_from([text for text, _ in CASES]), max_size=8))
def test_no_text_raises(parts):
    for text in (*parts, "".join(parts)):
        read(text)


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_no_bytes_raise_nor_hide_a_head(before, after):
    line = before.replace(b"\n", b"") + b"\nNVRM: Xid (PCI:0000:52:00): 79, " + after
    found = [head for part in line.split(b"\n") for head in heads(Reader().read(part))]
    assert ("0000:52:00", 79) in found


@pytest.mark.parametrize("filler", ["x", " ", "Xid (", "NVRM: ", "EDAC MC", "\\x0a", "[", "SRAM "])
def test_a_line_of_a_megabyte_keeps_its_head(filler):
    line = filler * (1_000_000 // len(filler)) + " NVRM: Xid (PCI:0000:52:00): 79, " + "y" * 9000
    assert heads(read(line)) == [("0000:52:00", 79)]


def test_a_long_message_is_looked_at_at_both_ends():
    aer = "pcieport 0000:00:02.0: AER: Corrected error received: id=0010"
    padding = "z" * 3 * MAX_MESSAGE
    assert [r.kind for r in read(aer + padding)] == ["aer"]
    assert [r.kind for r in read(padding + " " + aer)] == ["aer"]


@settings(max_examples=300)
@given(
    code=st.sampled_from([31, 45, 48, 79, 94, 95, 149, 154, 172]),
    frame=st.sampled_from(FRAMES),
    process=st.sampled_from(
        ["", ", pid=7", ", pid=7, name=x", ", pid=7, name=a, b", ", pid=7, name=RST: Yes"]
    ),
    tail=st.lists(
        st.sampled_from([
            "", ", Ch 0000000a", " caused by previous Xid 95", ", Contained: SM (0x1).",
            " RST: Yes", ", SRAM", " threshold exceeded", "\\x0a", "#012", "[  1.123456]",
            "NVRM: ", "NVRM: Xid (PCI:0000:52:00): 79, x", "Xid (PCI:0000:53:00): 95",
            ", GPU recovery action changed from 0x0 (None) to 0x2",
            ", NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6 0x00000000)", "\x85", "é",
        ]),
        max_size=4,
    ).map("".join),
)  # fmt: skip
def test_the_short_way_says_what_the_families_say(code, frame, process, tail):
    """A line in a usual frame, and the same in one that only the long way understands."""
    line = f"NVRM: Xid (PCI:0000:52:00): {code}{process}{tail}"
    assert read(frame + line) == read("an unusual frame: " + line)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([text for text, _ in CASES]),
            st.sampled_from(FRAMES),
            st.integers(0, 1 << 22),
        ),
        max_size=30,
    )
)
def test_a_reader_that_keeps_answers_says_what_a_fresh_one_says(picked):
    """Same lines, same order; one reader keeps answers, the other forgets them at every line."""
    keeping, forgetting = Reader(), Reader()
    for text, frame, pid in picked:
        line = frame + text.replace("pid='<unknown>'", f"pid={pid}")
        forgetting.forget_answers()
        assert keeping.read(line) == forgetting.read(line)

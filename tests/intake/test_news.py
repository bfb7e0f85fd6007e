"""What the engine is told of a marked node, and when."""

from dataclasses import replace

import pytest

from fleet.fault import Advice, FaultName
from fleet.mark import MarkState
from fleet.opening import Opening
from intake.delivery import Parcel, Sent, due, worse
from intake.settings import Settings
from tests.intake.cases import NODE, NOW, a_fault, a_mark, a_report, later

SICK = a_report(a_fault())
SICKER = a_report(a_fault(), a_fault(FaultName.THERMAL))
BETTER = a_report()
NEW_BOOT = a_report(a_fault(), boot_id="b2")
OPTED_OUT = replace(SICK, managed=False)
COUNTED = a_report(a_fault(count=500))
PENDING, OWNED, PROBATION = (a_mark(each) for each in MarkState)


def parcel(mark, report):
    return Parcel(Opening(NODE, mark), report)


@pytest.mark.parametrize(
    ("before", "after", "seconds", "expected"),
    [
        ((OWNED, SICK), (OWNED, SICK), 3600, False),
        ((OWNED, SICK), (OWNED, COUNTED), 3600, False),
        ((OWNED, SICK), (OWNED, BETTER), 59, False),
        ((OWNED, SICK), (OWNED, BETTER), 60, True),
        ((OWNED, SICK), (OWNED, NEW_BOOT), 60, True),
        ((OWNED, SICK), (OWNED, SICKER), 1, True),
        ((OWNED, SICK), (OWNED, OPTED_OUT), 1, True),
        ((OWNED, OPTED_OUT), (OWNED, OPTED_OUT), 3600, False),
        ((PENDING, SICK), (PENDING, SICK), 29, False),
        ((PENDING, SICK), (PENDING, SICK), 30, True),
        ((PENDING, SICK), (OWNED, SICK), 3600, False),
        ((OWNED, SICK), (PENDING, SICK), 1, True),
        ((OWNED, SICK), (a_mark(MarkState.OWNED, id="another"), SICK), 1, True),
        ((PROBATION, BETTER), (PROBATION, SICK), 1, True),
    ],
)
def test_a_node_is_news_when_it_changed_seldom_unless_it_got_worse(
    before, after, seconds, expected
):
    sent = Sent(parcel(*before), NOW)
    assert due(sent, parcel(*after), later(seconds=seconds), Settings()) is expected


@pytest.mark.parametrize(
    ("age", "seconds", "expected"),
    [(600, 59, False), (600, 60, True), (86_400, 299, False), (86_400, 300, True)],
)
def test_a_mark_that_nobody_takes_up_is_repeated_more_seldom_as_it_ages(age, seconds, expected):
    mark = a_mark(opened=later(seconds=seconds - age))
    sent = Sent(parcel(mark, SICK), NOW)
    assert due(sent, parcel(mark, SICK), later(seconds=seconds), Settings()) is expected


def test_a_node_that_was_never_sent_is_news():
    assert due(None, parcel(PENDING, BETTER), NOW, Settings())


def test_a_node_gets_worse_by_a_new_fault_or_by_stronger_advice():
    assert worse(SICK, SICKER)
    assert worse(SICK, a_report(a_fault(advice=Advice.REPLACE)))
    assert not worse(SICK, a_report(a_fault(advice=Advice.HOLD)))
    assert not worse(SICKER, SICK)

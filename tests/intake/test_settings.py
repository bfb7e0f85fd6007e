"""The watcher's limits, as shipped and as changed by the environment."""

from dataclasses import replace
from datetime import timedelta

import pytest

from intake.settings import Settings, read_settings


def test_without_variables_the_limits_are_those_shipped():
    assert read_settings({"PATH": "/bin", "GPUMEND_CLUSTER": "c"}) == Settings()


def test_a_limit_is_changed_by_its_variable():
    given = {
        "GPUMEND_WATCHER_REPORT_AT_MOST_EVERY": "2s",
        "GPUMEND_WATCHER_PAGE_SIZE": "50",
        "GPUMEND_WATCHER_DELIVERIES_PER_SECOND": "7.5",
    }
    assert read_settings(given) == replace(
        Settings(),
        report_at_most_every=timedelta(seconds=2),
        page_size=50,
        deliveries_per_second=7.5,
    )


def test_every_mistake_is_named_at_once():
    given = {
        "GPUMEND_WATCHER_COMPARE_EVERY": "soon",
        "GPUMEND_WATCHER_PAGE_SIZE": "0",
        "GPUMEND_WATCHER_SPEED": "2",
    }
    with pytest.raises(ValueError, match=r"SPEED is no limit.*COMPARE_EVERY.*PAGE_SIZE"):
        read_settings(given)


@pytest.mark.parametrize("renew", ["10s", "15s"])
def test_a_leader_that_would_renew_too_late_is_refused(renew):
    with pytest.raises(ValueError, match="two would lead at once"):
        read_settings({"GPUMEND_WATCHER_LEASE_RENEW_EVERY": renew})

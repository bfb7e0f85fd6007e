"""Following a collection that is served badly: a scripted API, one answer after the other."""

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from fleet.errors import Expired, Refused, TooManyRequests, Transient
from fleet.ports import Page, WatchEvent
from intake.clock import SystemClock
from intake.journal import Journal
from intake.list_watch import ListWatch
from intake.settings import Settings
from intake.surroundings import Surroundings
from tests.intake.cases import PlainRules

SILENCE = object()
EXPIRED = Expired(410, "Expired", "too old resource version")


def thing(name, version, value=""):
    return {"metadata": {"name": name, "resourceVersion": version}, "value": value}


def page(*items, version="1", token=""):
    return Page(tuple(items), version, token)


def event(kind, name, version, value=""):
    return WatchEvent(kind, thing(name, version, value))


class Over(BaseException):
    """The script is over."""


@dataclass
class Script:
    """Answers for list and watch; an exception is raised, a list is a watch's events."""

    pages: list[Any]
    watches: list[Any]
    asked: list[Any] = field(default_factory=list)

    async def page(self, path, *, query=None, limit=500, token=""):
        self.asked.append(("page", limit, token))
        return self._next(self.pages)

    @asynccontextmanager
    async def watch(self, path, *, resource_version, query=None):
        self.asked.append(("watch", resource_version))
        yield _play(self._next(self.watches))

    def _next(self, answers):
        if not answers:
            raise Over
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def _play(events):
    for each in events:
        if each is SILENCE:
            await asyncio.Event().wait()
        if isinstance(each, BaseException):
            raise each
        yield each


class Waits(SystemClock):
    """Waits take no time and are remembered."""

    def __init__(self):
        self.waited = []

    async def sleep(self, seconds):
        self.waited.append(seconds)
        await asyncio.sleep(0)


async def followed(pages, watches, read=lambda manifest: manifest["value"], **settings):
    script, clock, changes = Script(pages, watches), Waits(), []
    given = Surroundings(
        cast(Any, script),
        cast(Any, None),  # nobody is told of incidents here
        PlainRules(),
        "c",
        (),
        replace(Settings(), **settings),
        clock,
        random.Random(7).random,
        Journal(),
    )
    following = ListWatch(given, "/things", read, lambda *change: changes.append(change))
    with suppress(Over):
        async with asyncio.timeout(10):
            await following.run()
    return following, script, clock, changes


async def test_every_page_is_read_and_the_watch_begins_where_the_list_ended():
    pages = [page(thing("a", "1", "x"), token="t"), page(thing("b", "2", "y"), version="9")]
    following, script, _, changes = await followed(pages, [])
    assert following.records == {"a": "x", "b": "y"}
    assert changes == [("a", None, "x"), ("b", None, "y")]
    assert script.asked == [("page", 500, ""), ("page", 500, "t"), ("watch", "9")]


async def test_a_watch_that_was_closed_or_broke_is_resumed_after_the_last_event_or_bookmark():
    watches = [
        [event("ADDED", "a", "2", "x"), event("BOOKMARK", "", "5")],
        [event("MODIFIED", "a", "6", "y"), Transient("connection reset")],
        [event("DELETED", "a", "7", "y")],
    ]
    following, script, _, changes = await followed([page()], watches)
    assert [what for what in script.asked if what[0] == "watch"] == [
        ("watch", "1"),
        ("watch", "5"),
        ("watch", "6"),
        ("watch", "7"),
    ]
    assert changes == [("a", None, "x"), ("a", "x", "y"), ("a", "y", None)]
    assert following.counts.lists == 1


@pytest.mark.parametrize("watch", [EXPIRED, [EXPIRED]], ids=["at-once", "in-the-stream"])
async def test_an_expired_version_leads_to_a_new_list_and_absence_there_is_deletion(watch):
    pages = [page(thing("a", "1", "x"), thing("b", "1")), page(thing("b", "8"), version="9")]
    following, script, _, changes = await followed(pages, [watch])
    assert script.asked[-1] == ("watch", "9")
    assert changes[-1] == ("a", "x", None)
    assert following.records == {"b": ""}


async def test_an_expired_continue_token_starts_the_list_again_with_larger_pages_and_loses_nobody():
    pages = [page(thing("a", "1"), token="t"), EXPIRED, page(thing("a", "3"), version="3")]
    following, script, _, changes = await followed(pages, [], page_size=10, page_growth=10)
    assert script.asked[:3] == [("page", 10, ""), ("page", 10, "t"), ("page", 100, "")]
    assert changes == [("a", None, "")]
    assert following.synced.is_set()


async def test_pages_do_not_grow_without_limit():
    _, script, _, _ = await followed([EXPIRED] * 6, [], page_size=10, page_limit=500)
    assert [what[1] for what in script.asked] == [10, 100, 500, 500, 500, 500, 500]


async def test_a_silent_watch_is_given_up_and_resumed():
    watches = [[event("BOOKMARK", "", "5"), SILENCE], [event("ADDED", "a", "6")]]
    quick = timedelta(milliseconds=20)
    following, script, _, _ = await followed([page()], watches, watch_idle=quick)
    assert script.asked[-2:] == [("watch", "5"), ("watch", "6")]
    assert following.counts.idle == 1


async def test_failures_are_waited_out_ever_longer_within_a_limit_and_never_regularly():
    failures = [Transient("refused")] * 9
    _, _, clock, _ = await followed([*failures, page()], [])
    assert all(0.25 <= wait <= 30 for wait in clock.waited)
    assert clock.waited[8] > clock.waited[0]
    assert len(set(clock.waited)) == len(clock.waited)


async def test_a_server_that_says_when_to_come_back_is_obeyed_within_the_limit():
    failures = [
        TooManyRequests(429, "TooManyRequests", "slow down", retry_after=7.0),
        Transient("503", retry_after=4_000),
    ]
    _, _, clock, _ = await followed([*failures, page()], [])
    assert clock.waited[:2] == [7.0, 30.0]


async def test_lists_that_expire_at_once_again_and_again_are_waited_out_too():
    pages = [page() for _ in range(8)]
    _, _, clock, _ = await followed(pages, [EXPIRED] * 8)
    assert clock.waited[7] > clock.waited[0]


async def test_a_refusal_is_said_once_and_does_not_end_the_watcher(caplog):
    forbidden = Refused(403, "Forbidden", "cannot list resource nodes")
    following, *_ = await followed([forbidden, forbidden, page(thing("a", "1"))], [])
    assert following.records == {"a": ""}
    assert caplog.text.count("did=cannot-watch") == 1


async def test_an_object_that_cannot_be_read_keeps_its_last_record_and_stops_nobody(caplog):
    def read(manifest):
        if manifest["value"] == "bad":
            raise ValueError("not a value")
        return manifest["value"]

    watches = [[event("MODIFIED", "a", "2", "bad"), event("ADDED", "b", "3", "y")]]
    following, *_ = await followed([page(thing("a", "1", "x"))], watches, read)
    assert following.records == {"a": "x", "b": "y"}
    assert (following.counts.unreadable, "name=a" in caplog.text) == (1, True)


async def test_a_list_that_shows_nothing_new_changes_nothing():
    pages = [page(thing("a", "1", "x")), page(thing("a", "1", "x"), version="4")]
    _, _, _, changes = await followed(pages, [EXPIRED])
    assert changes == [("a", None, "x")]

"""What notifications say, how often they go out, and what a receiver's answers mean."""

import asyncio
import hmac
import json
from datetime import UTC, datetime

import httpx
import pytest
from temporalio.exceptions import ApplicationError

from activities.adapters.webhook import KEY, SIGNATURE, Receiver, Webhook, read_receiver
from activities.event_writer import EventWriter
from activities.notice import Notice, body_of, digest_of, notice_of
from activities.notifier import MOST_AT_ONCE, TURN_SECONDS, Notifier
from activities.storm_notice import announcer
from activities.tell import TellActivities
from fleet.errors import Refused, Transient
from fleet.telling import Matter, Telling
from policies.storm import Storm
from tests.cluster import FAULT, INCIDENT, Temporal, identity, now

URL = "https://hooks.example.test/services/SECRET"


def telling(key="k1", matter=Matter.ASK, **about):
    about.setdefault("lines", ("replace n1? it runs default/trainer-0",))
    about.setdefault("answers", ("approve", "deny"))
    return Telling(matter, key, INCIDENT, identity(), (FAULT,), ask="i7-2", until=now(), **about)


def test_a_question_says_how_to_answer_it():
    body = body_of(notice_of(telling(expiry="deny")))
    assert body["commands"] == [
        "gpumend approve n1 --cluster c1 --ask i7-2 --reason '…'",
        "gpumend deny n1 --cluster c1 --ask i7-2 --reason '…'",
    ]
    assert "replace n1? it runs default/trainer-0" in body["text"]
    assert "UTC: deny" in body["text"]
    assert body["workflow_id"] in body["text"]
    assert json.loads(json.dumps(body)) == body


def test_a_hand_off_says_what_is_needed_and_takes_no_approval():
    said = body_of(notice_of(telling(matter=Matter.HAND_OFF, lines=("check n1 by hand",))))
    assert said["lines"][0] == "check n1 by hand"
    assert not [each for each in said["commands"] if "approve" in each]
    assert any("release n1" in each for each in said["commands"])


def test_a_notice_is_bounded_whatever_it_is_given():
    body = body_of(notice_of(telling(lines=("x" * 100_000,) * 100)))
    assert len(json.dumps(body)) < 20_000


def notices(count):
    return [Notice(f"k{n}", Matter.ASK, f"n{n} asks") for n in range(count)]


def test_a_digest_counts_all_and_names_some():
    body = digest_of(notices(500))
    assert body["title"] == "gpumend: 500 things to tell (500 ask)"
    assert body["text"].endswith("and 475 more: gpumend incidents")
    assert len(body["notices"]) == 25


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.at = 0.0

    def now(self):
        return self.at

    async def sleep(self, seconds):
        self.at += seconds
        await asyncio.sleep(0)


class Inbox:
    def __init__(self, *problems):
        self.bodies = []
        self.problems = list(problems)

    async def post(self, body):
        if self.problems:
            raise self.problems.pop(0)
        self.bodies.append(body)


async def test_five_hundred_questions_become_a_few_messages_that_name_them_all():
    inbox, clock = Inbox(), Clock()
    notifier = Notifier(inbox.post, clock.now, clock.sleep)
    await asyncio.gather(*(notifier.notify(each) for each in notices(500)))
    assert len(inbox.bodies) <= 3
    assert sum(sum(each.get("counts", {"one": 1}).values()) for each in inbox.bodies) == 500


async def test_a_trickle_never_sends_more_than_the_rule_allows():
    inbox, clock = Inbox(), Clock()
    notifier = Notifier(inbox.post, clock.now, clock.sleep)
    for each in notices(40):
        await notifier.notify(each)
    assert len(inbox.bodies) == 40
    assert clock.at >= (40 - MOST_AT_ONCE) * TURN_SECONDS - 0.001


async def test_one_thing_is_one_message():
    inbox, clock = Inbox(), Clock()
    notifier = Notifier(inbox.post, clock.now, clock.sleep)
    same = Notice("k", Matter.ASK, "n1 asks")
    await asyncio.gather(notifier.notify(same), notifier.notify(same))
    await notifier.notify(same)
    assert len(inbox.bodies) == 1


async def test_everybody_in_a_batch_hears_that_it_failed_and_may_try_again():
    inbox, clock = Inbox(Transient("away")), Clock()
    notifier = Notifier(inbox.post, clock.now, clock.sleep)
    ended = await asyncio.gather(
        *(notifier.notify(each) for each in notices(5)), return_exceptions=True
    )
    assert [type(each) for each in ended] == [Transient] * 5
    await asyncio.gather(*(notifier.notify(each) for each in notices(5)))
    assert sum(sum(each["counts"].values()) for each in inbox.bodies) == 5


def hook(answer, secret=b""):
    return Webhook(Receiver(URL, secret), httpx.AsyncClient(transport=httpx.MockTransport(answer)))


@pytest.mark.parametrize(
    ("status", "means"),
    [(200, None), (204, None), (400, Refused), (404, Refused), (429, Transient), (503, Transient)],
)
async def test_the_answers_of_a_receiver(status, means):
    webhook = hook(lambda _: httpx.Response(status, text="because"))
    if means is None:
        await webhook.post({"key": "k"})
        return
    with pytest.raises(means) as found:
        await webhook.post({"key": "k"})
    assert "SECRET" not in str(found.value)
    assert "hooks.example.test" in str(found.value)


async def test_a_receiver_that_is_away_may_be_there_later():
    def refuse(request):
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(Transient, match="ConnectError"):
        await hook(refuse).post({"key": "k"})


async def test_a_body_is_signed_as_it_is_sent():
    seen = []

    def take(request):
        seen.append(request)
        return httpx.Response(200)

    await hook(take, b"hush").post(body_of(notices(1)[0]))
    expected = hmac.new(b"hush", seen[0].content, "sha256").hexdigest()
    assert seen[0].headers[SIGNATURE] == f"sha256={expected}"
    assert seen[0].headers[KEY] == "k0"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"GPUMEND_NOTIFY_URL": "hooks.example.test/x"}, "must begin with https://"),
        ({"GPUMEND_NOTIFY_URL": "file:///etc"}, "must begin with https://"),
        ({"GPUMEND_NOTIFY_SECRET_FILE": "f"}, "GPUMEND_NOTIFY_URL is not"),
        ({"GPUMEND_NOTIFY_URL": URL, "GPUMEND_NOTIFY_SECRET_FILE": "nowhere"}, "cannot be read"),
    ],
)
def test_a_wrong_setting_is_said_without_the_address(given, says):
    with pytest.raises(ValueError, match=says) as found:
        read_receiver(given)
    assert "SECRET" not in str(found.value).replace("SECRET_FILE", "")


def test_an_empty_secret_is_refused_and_nothing_is_shown_of_a_receiver(tmp_path):
    file = tmp_path / "secret"
    given = {"GPUMEND_NOTIFY_URL": URL, "GPUMEND_NOTIFY_SECRET_FILE": str(file)}
    file.write_text("\n")
    with pytest.raises(ValueError, match="empty file"):
        read_receiver(given)
    file.write_text("hush\n")
    receiver = read_receiver(given)
    assert receiver == Receiver(URL, b"hush")
    assert "SECRET" not in repr(receiver)
    assert "hush" not in repr(receiver)
    assert read_receiver({}) is None


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def storm(**about):
    about.setdefault("nodes", ("n1", "n2"))
    return Storm("pool/a", "pool/a", NOON, 40, 100, "40 of 100, above 30%", "driver 580", **about)


async def test_a_storm_is_one_message_however_often_it_is_announced():
    inbox = Inbox()
    announce = announcer(Notifier(inbox.post), "c1")
    for _ in range(3):
        await announce(storm())
    assert len(inbox.bodies) == 1
    text = inbox.bodies[0]["text"]
    assert "40 of 100 nodes of pool/a are sick at once" in text
    assert "driver 580" in text
    assert "n1, n2 and 38 more" in text


async def test_a_storm_that_is_over_when_it_is_told_says_so_and_names_nobody():
    inbox = Inbox()
    await announcer(Notifier(inbox.post), "c1")(
        Storm("pool/a", "pool/a", NOON, 0, 100, "40 of 100, above 30%", "", (), over=True)
    )
    text = inbox.bodies[0]["text"]
    assert "too many nodes of pool/a were sick at once" in text
    assert "40 of 100, above 30%" in text
    assert "over before this could be told" in text
    assert "share" not in text


@pytest.mark.parametrize(
    ("problem", "raised"), [(Transient("away"), Transient), (Refused(400, "no", "bad"), None)]
)
async def test_a_storm_is_announced_again_unless_the_receiver_refused_it(problem, raised):
    announce = announcer(Notifier(Inbox(problem).post), "c1")
    if raised:
        with pytest.raises(raised):
            await announce(storm())
    else:
        await announce(storm())
    await announcer(None, "c1")(storm())


class Silent(EventWriter):
    def __init__(self):
        pass

    async def write(self, event):
        del event
        return True


@pytest.mark.parametrize(
    ("problem", "final"), [(Transient("away"), False), (Refused(400, "no", "bad"), True)]
)
async def test_a_failed_notification_is_repeated_by_temporal_unless_it_was_refused(problem, final):
    tell = TellActivities(Silent(), Notifier(Inbox(problem).post)).tell
    with pytest.raises(ApplicationError) as found:
        await Temporal().run(tell, telling())
    assert found.value.non_retryable is final


async def test_without_a_receiver_there_is_the_event_alone():
    assert await Temporal().run(TellActivities(Silent()).tell, telling()) is False

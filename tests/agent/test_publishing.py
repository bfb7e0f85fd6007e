"""What the API server hears: what differs and matters, the newest word, again until it is heard."""

import threading
from datetime import UTC, datetime
from importlib.metadata import version

import pytest

from fleet.errors import Ambiguous, Conflict, NotFound, Refused, TooManyRequests, Transient
from fleet.fault import Advice, Fault, FaultName
from fleet.part import Part
from probes.agent import publish
from probes.agent.api import ApiServer
from probes.agent.conditions import conditions
from probes.agent.publish import Board, Publisher, renew_lease
from tests.agent.server import ApiStand

NOW = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)


def fault(count: int = 1) -> Fault:
    part, name = Part("gpu:3"), FaultName.UNCONTAINED_MEMORY
    return Fault(part, name, "xid:95", Advice.RESET_GPU, count, NOW)


@pytest.fixture
def stand():
    stand = ApiStand()
    yield stand
    stand.close()


@pytest.fixture
def board(stand):
    board = Board(ApiServer(stand.url), "n1")
    board.read()
    return board


def test_only_what_differs_in_something_that_matters_is_patched(stand, board):
    def publish_now(*faults: Fault) -> list[str]:
        changed = board.differing(conditions("b1", faults))
        if changed:
            board.write(changed, NOW)
        return [each.type for each in changed]

    assert len(publish_now()) == 9
    assert publish_now() == []
    assert publish_now(fault(1)) == ["gpumend.io/Memory"]
    assert publish_now(fault(9)) == []
    assert publish_now(fault(10)) == ["gpumend.io/Memory"]
    assert publish_now() == ["gpumend.io/Memory"]


def test_a_restarted_agent_patches_nothing_that_the_server_has_already(stand, board):
    board.write(board.differing(conditions("b1", [fault()])), NOW)
    again = Board(ApiServer(stand.url), "n1")
    again.read()
    assert again.differing(conditions("b1", [fault()])) == []


def test_the_transition_time_moves_only_with_the_status(stand, board):
    board.write(board.differing(conditions("b1", [fault(1)])), NOW)
    first = stand.conditions["gpumend.io/Memory"]["lastTransitionTime"]
    later = NOW.replace(hour=13)
    board.write(board.differing(conditions("b1", [fault(10)])), later)
    memory = stand.conditions["gpumend.io/Memory"]
    assert memory["lastTransitionTime"] == first
    assert memory["lastHeartbeatTime"] == "2026-11-29T13:00:00Z"
    board.write(board.differing(conditions("b1", [])), later)
    assert stand.conditions["gpumend.io/Memory"]["lastTransitionTime"] == "2026-11-29T13:00:00Z"


def test_conditions_are_patched_by_strategic_merge_on_the_nodes_own_status(stand, board):
    board.write(board.differing(conditions("b1", [])), NOW)
    patch = ("PATCH", "/api/v1/nodes/n1/status", "application/strategic-merge-patch+json")
    assert stand.calls[-1] == patch


def test_the_lease_is_created_once_and_then_renewed(stand):
    server = ApiServer(stand.url)
    renew_lease(server, "n1", "b1", NOW)
    renew_lease(server, "n1", "b2", NOW)
    assert [call[0] for call in stand.calls] == ["PATCH", "POST", "PATCH"]
    assert stand.leases["agent-n1"] == {
        "holderIdentity": "b2",
        "leaseDurationSeconds": 360,
        "renewTime": "2026-11-29T12:00:00.123456Z",
    }
    assert stand.notes == {"gpumend.io/agent-version": version("gpumend")}


def test_the_token_is_read_for_every_call(stand, tmp_path):
    token = tmp_path / "token"
    server = ApiServer(stand.url, token)
    for text in ("first", "second\n"):
        token.write_text(text)
        server.get("/api/v1/nodes/n1/status")
    assert stand.tokens == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (403, Refused),
        (404, NotFound),
        (409, Conflict),
        (429, TooManyRequests),
        (500, Transient),
        (503, Transient),
    ],
)
def test_every_answer_of_the_server_is_one_of_our_errors(stand, code, error):
    stand.fail_with = code
    with pytest.raises(error):
        ApiServer(stand.url).get("/api/v1/nodes/n1/status")


def test_a_server_that_is_away_is_transient(stand):
    stand.close()
    server = ApiServer(stand.url)
    with pytest.raises(Transient):
        server.patch("/api/v1/nodes/n1/status", {}, "application/merge-patch+json")


def test_a_write_whose_answer_is_lost_is_ambiguous():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        server = ApiServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(Ambiguous):
            server.create("/apis/x", {"a": 1})
        thread.join()


@pytest.fixture
def publisher(stand, monkeypatch):
    monkeypatch.setattr("probes.agent.pace.PATCH_PERIOD", 0.02)
    monkeypatch.setattr(publish, "RETRY_FIRST", 0.02)
    monkeypatch.setattr(publish, "RETRY_LIMIT", 0.1)
    publisher = Publisher(ApiServer(stand.url), "n1", lambda: NOW)
    thread = threading.Thread(target=publisher.run)
    thread.start()
    yield publisher
    publisher.stop()
    thread.join(5)
    assert not thread.is_alive()


def test_while_the_server_is_away_only_the_newest_word_is_kept(stand, publisher):
    stand.fail_with = 503
    for count in range(1, 30):
        publisher.want("b1", conditions("b1", [fault(count)]))
    stand.wait_until(lambda: len(stand.calls) >= 3)
    publisher.want("b1", conditions("b1", []))
    stand.fail_with = 0
    stand.wait_until(lambda: stand.status("Memory") == ("True", "Healthy"))
    assert sum("gpumend.io/Memory" in patch for patch in stand.patches) == 1


def test_a_lease_that_is_refused_does_not_keep_conditions_from_the_server(
    stand, publisher, monkeypatch
):
    def refuse(*_: object) -> None:
        raise Refused(403, "Forbidden", "no")

    monkeypatch.setattr(publish, "renew_lease", refuse)
    publisher.want("b1", conditions("b1", [fault()]))
    stand.wait_until(lambda: stand.status("Memory") == ("False", "UncontainedMemory"))


def test_a_node_that_was_made_anew_gets_our_word_again(stand, publisher):
    publisher.lease_period = 0.05
    publisher.want("b1", conditions("b1", []))
    stand.wait_until(lambda: len(stand.conditions) == 9 and stand.leases)
    with stand.changed:
        stand.conditions.clear()
    stand.wait_until(lambda: len(stand.conditions) == 9)

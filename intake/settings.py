"""The watcher's own limits, each with its reason. What people tune a fleet with is policy
(`policies.limit_terms`) and not here.

Demo and tests pass their own, shorter ones; the code that uses them is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta

from policies.durations import parse_duration
from policies.limit_terms import TOLD_EVERY

PREFIX = "GPUMEND_WATCHER_"
"""Begins the environment variables that change a limit: GPUMEND_WATCHER_COMPARE_EVERY=30s."""

_second = timedelta(seconds=1)
_minute = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Settings:
    """How long the watcher waits, how often it repeats, and how much it does at once."""

    lease_duration: timedelta = 15 * _second
    """How long others wait for a leader that has stopped renewing."""
    lease_renew_every: timedelta = 3 * _second
    """Well within the duration: one lost request must not cost the leadership."""
    lease_give_up_after: timedelta = 10 * _second
    """A leader that could not renew for this long stops, before another may begin."""
    lease_release_limit: timedelta = 2 * _second
    """How long a leader that stops tries to give the Lease back; it runs out by itself."""

    page_size: int = 500
    """Nodes a page: about 7 MB of JSON, what the API server serves without strain."""
    page_growth: int = 10
    """A list whose continue token expired is started again with pages this much larger."""
    page_limit: int = 50_000
    """No page is larger; the API server would build it in memory."""
    watch_idle: timedelta = 150 * _second
    """A watch that says nothing for this long, not even a bookmark (one a minute), is dead."""
    backoff_first: timedelta = 0.5 * _second
    """First wait after a failed call; each further one doubles."""
    backoff_limit: timedelta = 30 * _second
    """No wait is longer: what was away is noticed to be back within half a minute."""

    agent_silent_after: timedelta = 6 * _minute
    """Three renewals of an agent's Lease missed (it renews every two minutes)."""
    boot_grace: timedelta = 10 * _minute
    """A machine that has just booted is not called silent: drivers load, images are pulled."""

    sweep_every: timedelta = 15 * _second
    """How often every node is judged again, for what changes by time alone."""
    sweep_slice: int = 200
    """Nodes judged in one go before others get the event loop."""
    node_writes_at_once: int = 16
    """Patches of nodes in flight. More gain nothing: an API server writes one at a time to etcd."""
    node_write_attempts: int = 5
    """Tries of one patch, each after reading the node again; then the next sweep decides."""
    own_write_limit: timedelta = 30 * _second
    """How long a node waits for our own patch to come back by the watch."""

    deliveries_at_once: int = 8
    """Calls to Temporal in flight."""
    deliveries_per_second: float = 50.0
    """A storm of starts starves the workflow tasks that they cause (78/s measured on two cores)."""
    repeat_pending_after: timedelta = 30 * _second
    """A mark that is still pending after this long was perhaps not heard of: start again."""
    report_at_most_every: timedelta = TOLD_EVERY
    """A flapping node is not sent more often, unless it got worse."""

    proofs_at_once: int = 2
    """Calls to Temporal in flight for nodes that are to be proven: they are in no hurry."""
    prove_again_after: timedelta = 15 * _minute
    """A node that is still unproven is asked for again: whatever ran may be over; then doubled."""
    prove_again_at_most_after: timedelta = 360 * _minute
    """But no longer than this: what kept it from being proven may be mended any day."""

    compare_every: timedelta = 5 * _minute
    """How often marks are compared with the list of open incidents."""
    hand_offs_every: timedelta = 30 * _second
    """How often it is listed whom people have: they leave the breaker's share, and one list is
    cheap."""
    withdraw_after: timedelta = 5 * _minute
    """A hold that nobody took up is taken back after the node was clean for this long."""

    breaker_look_every: timedelta = 5 * _second
    """How often the breaker's record is read: a person's word is heeded within this time."""
    breaker_rest: timedelta = _second
    """Between two looks, however much happens: each is one or two calls to the API server."""
    newborn_for: timedelta = 60 * _minute
    """A node this young that is sick was perhaps born so: image, driver and parts are untried."""
    newborn_faults: int = 2
    """Newborn nodes of a scope with one fault that are no chance any more; one may be."""

    census_at_most_every: timedelta = 10 * _second
    """Each census is an event in the budget's history."""
    census_at_least_every: timedelta = 30 * _second
    """One that is older than a minute lends nothing: one may be lost."""

    def __post_init__(self) -> None:
        renew, give_up = self.lease_renew_every, self.lease_give_up_after
        if not renew < give_up < self.lease_duration:
            raise ValueError(
                f"lease_renew_every ({renew}) < lease_give_up_after ({give_up}) < lease_duration"
                f" ({self.lease_duration}) must hold, or two would lead at once"
            )
        if self.census_at_most_every > self.census_at_least_every:
            raise ValueError(
                f"census_at_most_every ({self.census_at_most_every}) must not be longer than"
                f" census_at_least_every ({self.census_at_least_every})"
            )


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The limits, changed by variables that begin with PREFIX; durations like `30s`.

    Raises ValueError that names every variable that is unknown or cannot be read.
    """
    known = {PREFIX + each.name.upper(): each for each in fields(Settings)}
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX)}
    values: dict[str, object] = {}
    mistakes = [f"{name} is no limit of the watcher" for name in sorted(given.keys() - known)]
    for name in sorted(given.keys() & known.keys()):
        default = known[name].default
        try:
            values[known[name].name] = _read(given[name], type(default))
        except ValueError as problem:
            mistakes.append(f"{name}: {problem}")
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return Settings(**values)  # type: ignore[arg-type] # each has the type of its default


def _read(text: str, kind: type[object]) -> object:
    if kind is timedelta:
        return parse_duration(text)
    number = int(text) if kind is int else float(text)
    if not number > 0:
        raise ValueError(f"{text} is not above zero")
    return number

"""What the watcher says: one logfmt line a change, and a lasting trouble said once, not each time.

No serial numbers and no raw conditions in here: names, faults and reasons.
"""

import json
import logging

TROUBLES = 20_000
"""Lasting troubles that are remembered as said: twice the nodes of a large cluster."""

_log = logging.getLogger("gpumend.watcher")


class Journal:
    """Lines on the process's log, and the troubles that have been said and are not over yet."""

    def __init__(self) -> None:
        self._troubles: dict[str, str] = {}

    def say(self, what: str, **fields: object) -> None:
        """One change, in the order of the fields."""
        _log.info(_line(what, fields))

    def trouble(self, key: str, what: str, **fields: object) -> bool:
        """A trouble that may repeat: said when it begins and when its words change; True if so."""
        line = _line(what, fields)
        if self._troubles.get(key) == line:
            return False
        self._make_room()
        self._troubles[key] = line
        _log.warning(line)
        return True

    def over(self, key: str, what: str, **fields: object) -> None:
        """The trouble is over; silent where there was none."""
        if self._troubles.pop(key, None) is not None:
            _log.info(_line(what, fields))

    def _make_room(self) -> None:
        """Troubles of nodes that went away are never over: the oldest make room."""
        while len(self._troubles) >= TROUBLES:
            del self._troubles[next(iter(self._troubles))]


def _line(what: str, fields: dict[str, object]) -> str:
    return " ".join([f"did={what}", *(f"{key}={_word(value)}" for key, value in fields.items())])


def _word(value: object) -> str:
    text = str(value) or type(value).__name__ if isinstance(value, Exception) else str(value)
    plain = text and not any(each in ' "=\n' for each in text)
    return text if plain else json.dumps(text, ensure_ascii=False)

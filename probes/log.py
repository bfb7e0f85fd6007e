"""One event a line on standard error, in logfmt: what an agent says of itself.

No kernel line, no serial number and no token goes in here.
"""

import json
import sys
from datetime import UTC, datetime


def say(event: str, **fields: object) -> None:
    """Write one line; a reader that is gone is no reason to stop."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    words = [f"ts={at}", f"msg={_value(event)}"]
    words += [f"{key}={_value(value)}" for key, value in fields.items()]
    try:
        sys.stderr.write(" ".join(words) + "\n")
        sys.stderr.flush()
    except OSError:
        return


def _value(value: object) -> str:
    text = str(value)
    plain = text and all(each.isprintable() and each not in ' "=' for each in text)
    return text if plain else json.dumps(text)

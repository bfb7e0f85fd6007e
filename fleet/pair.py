"""What one Pod of a pair is told: which side it is, and where and for how long the two meet.

Who is paired with whom is `policies/pairwise.py`; what the Pods do is `probes/compute/pair.py`.
"""

import json
import re
from dataclasses import asdict, dataclass

LAST_PORT = 65_534
"""Two ports are needed, one behind the other."""
_MEETING = re.compile(r"[a-z0-9][a-z0-9-]{0,80}")
_HOST = re.compile(r"[0-9A-Fa-f.:]{2,45}")


@dataclass(frozen=True, slots=True)
class PairPlace:
    """Side 0 listens at `host` and `port`, where side 1 comes; ranks meet at the port behind it.

    `meeting` is what both must say to be believed, `seconds` how long adding up may take once they
    have met. Raises ValueError for what is none.
    """

    side: int
    host: str
    port: int
    meeting: str
    seconds: float

    def __post_init__(self) -> None:
        if self.side not in (0, 1) or not 1 <= self.port <= LAST_PORT:
            raise ValueError(f"no side of a pair, or no port: {self.side}, {self.port}")
        if not _HOST.fullmatch(self.host) or not _MEETING.fullmatch(self.meeting):
            raise ValueError(f"no address, or no meeting: {self.host!r}, {self.meeting!r}")
        if not 0 < self.seconds <= 3_600:
            raise ValueError(f"not a time to add up in: {self.seconds} s")


def format_place(place: PairPlace) -> str:
    """As the command line has it."""
    return json.dumps(asdict(place))


def parse_place(text: str) -> PairPlace:
    """Read it back; raises ValueError for anything else."""
    try:
        return PairPlace(**json.loads(text))
    except TypeError as problem:
        raise ValueError(f"not the place of a pair: {problem}") from problem

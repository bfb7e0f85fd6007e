"""A question that was put to people, as the incident remembers it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked first when (`at`), how long an answer counts, and on which evidence.

    `id` names the question in answers; `evidence` is a digest of what the person was shown.
    """

    id: str
    at: datetime
    until: datetime
    evidence: str = ""

"""What an adapter may say of the outside world; vendor errors are translated into these once."""


class Transient(Exception):
    """It may work later: time-outs, overload, a connection that broke before any answer."""

    def __init__(self, what: str, retry_after: float | None = None) -> None:
        """`retry_after` in seconds, where the other side gave a hint."""
        super().__init__(what)
        self.retry_after = retry_after


class Ambiguous(Exception):
    """The call may or may not have happened: look before doing it again."""


class Refused(Exception):
    """The other side said no; repeating the same call will not help."""

    def __init__(self, code: int, reason: str, message: str, causes: tuple[str, ...] = ()) -> None:
        """HTTP status, machine-readable reason, its message, and the reasons of its causes."""
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = causes


class NotFound(Refused):
    """There is no such object (any more)."""


class Conflict(Refused):
    """A precondition (UID, resourceVersion) no longer holds, or the name is taken."""


class Expired(Refused):
    """The resourceVersion or continue token is too old (410): list again."""


class TooManyRequests(Refused):
    """429. With cause `DisruptionBudget` a PDB said no; without it the server is overloaded."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        causes: tuple[str, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        """As `Refused`; `retry_after` in seconds, where the server gave a hint."""
        super().__init__(code, reason, message, causes)
        self.retry_after = retry_after

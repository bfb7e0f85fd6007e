"""The world of a whole watcher, as intake's tests have it."""

from tests.intake.conftest import world

__all__ = ["world"]

"""How often a process of the engine looks for garbage.

A storm makes some hundred thousand objects that live: to look through them again and again was a
third of the budget's time on a core (measured, ten thousand asks). Nothing else belongs here.
"""

import gc

OBJECTS = 50_000
"""New ones before the youngest are looked through: some five megabytes."""
GENERATIONS = 20


def rarely() -> None:
    """Look for garbage less often; for the whole process."""
    gc.set_threshold(OBJECTS, GENERATIONS, GENERATIONS)

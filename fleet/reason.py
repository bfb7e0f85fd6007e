"""The stable codes that an Outcome's `reason` carries where `decide` reads them.

A code that is not here is shown to people and changes nothing: only its kind counts. A step on a
node may say more (`reset-refused`, `pdb-blocked`); what decides the ladder's way stands here.
"""

from typing import Final

HOLD_REMOVED: Final = "hold-removed"
"""Our taint is gone and we did not take it off (CANCELLED): the ladder waits for a person."""
MARK_REMOVED: Final = "mark-removed"
"""Our mark is gone, too, or is another incident's (CANCELLED): somebody ended this incident."""
PAUSED: Final = "paused"
"""The node carries the pause annotation (CANCELLED): asked again later."""
UNMANAGED: Final = "unmanaged"
"""The node was opted out by label (CANCELLED): nothing more is done to it."""
PREMISE_GONE: Final = "premise-gone"
"""The faults that justified the step do not stand any more (CANCELLED): look at the reports."""
FAULT_STANDS: Final = "fault-stands"
"""A release saw the fault on the node that it was to give back (CANCELLED)."""
BOOT_CHANGED: Final = "boot-changed"
"""The node has booted since the decision (CANCELLED); `Outcome.boot_id` is the new one."""
BUSY_ELSEWHERE: Final = "busy-elsewhere"
"""Another controller works on this node (CANCELLED): asked again later."""
DEADLINE: Final = "deadline"
"""Time was up (PERMANENT)."""
NEEDS_APPROVAL: Final = "needs-approval"
"""Only a person may allow what the step would have to do (PERMANENT): a hand-off says what."""
QUEUED: Final = "queued"
"""The ask for a lease is on record and waits for a grant (TRANSIENT)."""
INTERRUPTED: Final = "interrupted"
"""The workflow stopped the step itself (CANCELLED): the facts say why."""
EXHAUSTED: Final = "exhausted"
"""The activity used up its attempts, or its worker died each time (AMBIGUOUS or TRANSIENT)."""
NO_MEANS: Final = "no-means"
"""Nobody here can do this step (PERMANENT): the next rung, or a hand-off that names the means."""

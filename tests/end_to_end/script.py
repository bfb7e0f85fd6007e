"""What a run of the demo with nothing amiss has to show."""

ENDED = {
    "recovered": 1,
    "repaired": 3,
    "replaced": 0,
    "handed_off": 0,
    "cancelled": 0,
    "superseded": 0,
}


def went_as_scripted(run):
    assert run.status == 0, run.printed
    assert run.summary["violations"] == []
    assert run.summary["ended"] == ENDED
    assert run.summary["incidents"] == 4

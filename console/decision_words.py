"""A decision in one line for a table, and why: the words of the card, without its markup."""

from fleet.decision import Ask, Decision, HandOff
from workflows.card import headline


def comes(decision: Decision) -> str:
    """What is going on, and until when."""
    return headline(decision).replace("**", "").replace("`", "")


def why(decision: Decision) -> tuple[str, ...]:
    """What it rests on or, where a person is wanted, what is wanted of them."""
    match decision:
        case HandOff(needs=needs):
            return needs
        case Ask(question=question, reasons=reasons):
            return (question, *reasons)
    return decision.reasons

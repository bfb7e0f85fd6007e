"""Whatever a file holds, the answer is a policy or mistakes with lines; never another exception."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.document import PolicyErrors, load

EXAMPLE = (Path(__file__).parents[2] / "docs/examples/small-cluster.yaml").read_text("utf-8")
LINES = [line for line in EXAMPLE.splitlines() if line.strip() and not line.startswith("#")]
SCRAPS = st.sampled_from(
    (
        "|",
        " ",
        "\t",
        "\x00",
        "\ufeff",
        "\ud800",
        "🙂",
        "steps: [reboot, reboot]",
        *[
            "~",
            "no",
            "[",
            "]",
            "{",
            "}",
            ":",
            "-",
            "&a",
            "*a",
            "<<:",
            "!x",
            "'",
            ">",
            "%",
            "@",
            "-1",
            "1e3",
            "12:30",
            "?",
            "---",
            "faults:",
            "slow:",
            "!!int",
        ],
        '"',
        "!!python/name:os.system",
    )
)
quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answer(text: str | bytes) -> None:
    try:
        policy = load(text, "p.yaml")
    except PolicyErrors as errors:
        for mistake in errors.mistakes:
            assert mistake.line >= 1
            assert mistake.column >= 1
            assert mistake.what
            assert mistake.remedy
            assert str(mistake).startswith(f"p.yaml:{mistake.line}:{mistake.column}: ")
    else:
        assert policy.digest


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The example with a few cuts, insertions, doublings and moves."""
    text = "\n".join(LINES) + "\n"
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        until = min(len(text), at + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["cut", "scrap", "double", "line"]))
        piece = {"cut": "", "scrap": draw(SCRAPS), "double": text[at:until] * 2}.get(kind)
        line = "\n" + draw(st.sampled_from(LINES)) + "\n"
        text = text[:at] + (line if piece is None else piece) + text[until:]
    return text


@quick
@given(mutated())
def test_any_mutation_of_a_policy_is_a_policy_or_mistakes(text: str) -> None:
    answer(text)


@quick
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_and_any_bytes_are_a_policy_or_mistakes(text: str | bytes) -> None:
    answer(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | SCRAPS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = ["budgets", "breaker", "faults", "approvals", "signals", "scopes", "limits"]
KEYS += ["hand_offs_count_in", "slow", "drain", "steps", "verify", "attempts", "scope", "step"]


def flow(value: object) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(each) for each in value) + "]"
    return f"'{value}'" if isinstance(value, str) and value.isalnum() else str(value)


shaped = st.recursive(
    values,
    lambda inner: st.dictionaries(
        st.sampled_from(KEYS), inner | st.lists(inner, max_size=2), max_size=4
    ),
    max_leaves=6,
)


@quick
@given(shaped)
def test_any_shape_under_the_right_keys_is_a_policy_or_mistakes(value: object) -> None:
    answer(flow(value))

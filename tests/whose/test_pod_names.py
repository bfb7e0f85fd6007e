"""What a pod is called is read from the kubelet's folders, or not told at all."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pod_names import FOLDER, NAMES_LIMIT, PodName, PodNames, names_of, parse_folder
from tests.whose.proc import HASH, POD_A, POD_B

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (f"train_llm-0_{POD_A}", (POD_A, PodName("train", "llm-0"))),
        (
            f"kube-system_etcd-ip-10-0-0-1.ec2_{HASH}",
            (HASH, PodName("kube-system", "etcd-ip-10-0-0-1.ec2")),
        ),
        (f"train_llm-0_{POD_A.upper()}", None),
        (f"train_{POD_A}", None),
        (f"Train_llm-0_{POD_A}", None),
        (f"train_llm_0_{POD_A}", None),
        (f"_llm-0_{POD_A}", None),
        ("train_llm-0_", None),
        (f"train_llm-0_{HASH}0", None),
        (f"{'n' * 64}_llm-0_{POD_A}", None),
        ("lost+found", None),
        ("", None),
    ],
)
def test_a_folder_is_a_pod_only_as_kubelets_write_it(folder, said):
    assert parse_folder(folder) == said


@given(st.text(max_size=80))
def test_no_text_breaks_the_parser(text):
    assert parse_folder(text) is None or "_" in text


def test_a_uid_that_two_pods_claim_is_nobodys():
    both = names_of([f"a_x_{POD_A}", f"b_x_{POD_A}", f"a_x_{POD_B}", f"a_x_{POD_B}"])
    assert both == {POD_B: PodName("a", "x")}


def test_a_name_is_known_while_its_folder_is_there_and_after_it_was_asked_for(tmp_path):
    names = PodNames(tmp_path)
    assert names.of(POD_A, NOW) is None
    folder = tmp_path / FOLDER / f"train_llm-0_{POD_A}"
    folder.mkdir(parents=True)
    assert names.of(POD_A, NOW) is None, "listed no more than once a second"
    assert names.of(POD_A, LATER) == PodName("train", "llm-0")
    folder.rmdir()
    assert names.of(POD_A, LATER) == PodName("train", "llm-0")
    assert names.of(POD_B, LATER + timedelta(minutes=1)) is None


def test_names_are_kept_within_a_limit(tmp_path):
    names, at = PodNames(tmp_path), NOW
    for number in range(NAMES_LIMIT + 1):
        folder = tmp_path / FOLDER / f"train_llm-0_{number:032x}"
        folder.mkdir(parents=True)
        assert names.of(f"{number:032x}", at := at + timedelta(seconds=1)) is not None
        folder.rmdir()
    assert names.of(f"{0:032x}", at) is None
    assert names.of(f"{1:032x}", at) is not None

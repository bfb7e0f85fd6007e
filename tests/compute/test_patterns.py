"""Every bit of every word is both 0 and 1, and one that is stuck is found where it is."""

import itertools

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.compute import patterns
from probes.compute.backend import OutOfMemory
from probes.compute.numpy_backend import NumpyDevice
from probes.compute.patterns import PATTERNS, Kept, examine_memory
from tests.compute.broken import MEMORY, Device

TILE = 1 << 9


def forever() -> float:
    return 1.0


def test_each_bit_of_each_word_is_both_zero_and_one_in_turn():
    index = numpy.arange(1 << 12, dtype=numpy.int64)
    written = [pattern(index) for pattern in PATTERNS.values()]
    assert (numpy.bitwise_or.reduce(written) == -1).all()
    assert (numpy.bitwise_and.reduce(written) == 0).all()


def test_no_two_words_are_alike_under_the_address_pattern():
    words = PATTERNS["address"](numpy.arange(1 << 16, dtype=numpy.int64))
    assert len(set(words.tolist())) == 1 << 16


def test_sound_memory_passes_and_most_of_it_was_tested():
    tested = examine_memory(NumpyDevice(bytes_total=MEMORY), forever, TILE)
    assert tested == Kept(tested.size, MEMORY, patterns=len(PATTERNS), of=len(PATTERNS))
    assert tested.size > 0.75 * MEMORY


@given(word=st.integers(0, 20_000), bit=st.integers(0, 63))
@settings(max_examples=25, deadline=None)
def test_a_stuck_bit_is_found_at_its_word_and_its_place(word, bit):
    device = Device(stuck=(word, bit))
    tested = examine_memory(device, forever, TILE)
    assert (tested.first, tested.bits) == (word, 1 << bit)
    assert tested.bad >= 1


@pytest.mark.parametrize("line", [0, 5, 9, 12, 14])
def test_a_broken_address_line_is_found(line):
    class Folded(NumpyDevice):
        """Words whose addresses differ in that line only are one word."""

        def store(self, block, start, values):
            index = numpy.arange(start, start + len(values))
            for other in (index & ~(1 << line), index | 1 << line):
                there = other < len(block)
                block[other[there]] = values[there]

    assert examine_memory(Folded(bytes_total=MEMORY), forever, TILE).bad


@pytest.mark.parametrize("held", [MEMORY // 2, MEMORY // 9, MEMORY])
def test_memory_that_others_hold_is_told_and_nothing_is_touched(held):
    device = NumpyDevice(bytes_total=MEMORY, bytes_held=held)
    tested = examine_memory(device, forever, TILE)
    assert (tested.size, tested.held, tested.bad) == (0, held, 0)
    assert device.bytes_used == 0


def test_what_the_library_only_keeps_is_nobody_elses_memory():
    class Caching(NumpyDevice):
        """Keeps an eighth of it from what ran before, until told to let go."""

        def let_go(self):
            self.bytes_held = 0

    tested = examine_memory(Caching(bytes_total=MEMORY, bytes_held=MEMORY // 8), forever, TILE)
    assert (tested.held, tested.patterns) == (0, len(PATTERNS))


def test_a_device_that_gives_out_early_is_tested_as_far_as_it_goes(monkeypatch):
    class Promising(NumpyDevice):
        """Says that all is free, while another takes half of it."""

        def memory(self):
            return MEMORY, MEMORY

        def reserve(self, words):
            if self.bytes_used + 8 * words > MEMORY // 2:
                raise OutOfMemory("taken")
            return NumpyDevice.reserve(self, words)

    monkeypatch.setattr(patterns, "BLOCK_WORDS", 1 << 10)
    tested = examine_memory(Promising(bytes_total=2 * MEMORY), forever, TILE)
    assert (tested.size, tested.bad) == (MEMORY // 2, 0)


@pytest.mark.parametrize("looks", [1, 200, 400])
def test_time_that_runs_out_leaves_patterns_undone_and_accuses_nobody(looks):
    clock = itertools.count(looks, -1)
    tested = examine_memory(NumpyDevice(bytes_total=MEMORY), lambda: next(clock), TILE)
    assert tested.patterns < tested.of == len(PATTERNS)
    assert tested.bad == 0

"""Real GPUs, by way of torch. Imported only in the child, and only where it was asked for."""

import ctypes
from typing import Any

import torch

from probes.compute.backend import FRACTION, Arithmetic, Array, OutOfMemory
from probes.driver_library import CUDA
from probes.parts import short_address

MASK = (1 << 64) - 1
_KINDS = {Arithmetic.HALF: torch.float16, Arithmetic.SINGLE: torch.float32}
_EXACT = (
    "allow_tf32",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
)
"""Liberties that libraries may take with a product: with any of them the sums are not exact."""


def devices() -> list["TorchDevice"]:
    """Every CUDA device of this machine, in the driver's order."""
    for name in _EXACT:
        if hasattr(torch.backends.cuda.matmul, name):
            setattr(torch.backends.cuda.matmul, name, False)
    driver = ctypes.CDLL(CUDA)
    return [
        TorchDevice(
            f"cuda:{index}", _address(driver, index), torch.cuda.get_device_properties(index).name
        )
        for index in range(torch.cuda.device_count())
    ]


def _address(driver: ctypes.CDLL, index: int) -> str:
    """Short PCI address of a device; empty where the driver does not say it."""
    device, text = ctypes.c_int(), ctypes.create_string_buffer(32)
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), index):
        return ""
    if driver.cuDeviceGetPCIBusId(text, len(text), device):
        return ""
    try:
        return short_address(text.value.decode("ascii", "replace"))
    except ValueError:
        return ""


class TorchDevice:
    """One CUDA device; `cpu` is the host in its place, for tests and for the independent value."""

    def __init__(self, name: str, pci: str = "", model: str = "") -> None:
        """`name` as torch writes it: `cuda:0`, `cpu`."""
        self.pci, self.model = pci, model
        self._on = torch.device(name)
        self._cuda = self._on.type == "cuda"

    def take(self) -> None:
        """Make it the process's own: a collective uses whatever is current."""
        torch.cuda.set_device(self._on)

    def memory(self) -> tuple[int, int]:
        """Free and total, as the driver says; a host is not tested."""
        return torch.cuda.mem_get_info(self._on) if self._cuda else (0, 0)

    def reserve(self, words: int) -> Array:
        """See the protocol."""
        try:
            return torch.empty(words, dtype=torch.int64, device=self._on)
        except torch.cuda.OutOfMemoryError as problem:
            raise OutOfMemory(str(problem)[:200]) from problem

    def let_go(self) -> None:
        """The cache of all devices: torch cannot empty that of one."""
        if self._cuda:
            torch.cuda.empty_cache()

    def count(self, start: int, stop: int) -> Array:
        """See the protocol."""
        return torch.arange(start, stop, dtype=torch.int64, device=self._on)

    def store(self, block: Array, start: int, values: Array) -> None:
        """See the protocol."""
        block[start : start + len(values)] = values

    def differing(self, found: Array, expected: Array) -> tuple[int, int, int]:
        """See the protocol."""
        bits = found ^ expected
        number = int(torch.count_nonzero(bits))
        if not number:
            return 0, 0, 0
        first = int((bits != 0).to(torch.int8).argmax())
        return number, first, int(bits[first]) & MASK

    def numbers(self, array: Array, arithmetic: Arithmetic) -> Array:
        """See the protocol."""
        return array.to(_KINDS[arithmetic])

    def zeros(self, rows: int, columns: int, arithmetic: Arithmetic) -> Array:
        """See the protocol."""
        return torch.zeros((rows, columns), dtype=_KINDS[arithmetic], device=self._on)

    def join(self, first: Array, second: Array, axis: int) -> Array:
        """See the protocol."""
        return torch.cat((first, second), axis)

    def add_product(self, out: Array, left: Array, right: Array, sign: int) -> None:
        """See the protocol."""
        out.addmm_(left, right, alpha=sign)

    def clear(self, out: Array) -> None:
        """See the protocol."""
        out.zero_()

    def whole(self, array: Array) -> Array:
        """See the protocol."""
        return (array.to(torch.float64) * 2.0**FRACTION).to(torch.int64)

    def total(self, array: Array) -> int:
        """See the protocol."""
        return int(array.sum()) & MASK

    def mark(self) -> Any:
        """An event in the device's own stream: enqueueing does not count as working."""
        with torch.cuda.device(self._on):
            event = torch.cuda.Event(enable_timing=True)
            event.record()
        return event

    def seconds(self, first: Any, last: Any) -> float:
        """By the device's own clock."""
        last.synchronize()
        return max(float(first.elapsed_time(last)) / 1e3, 1e-9)

    def settle(self) -> None:
        """Errors of what ran before show here."""
        torch.cuda.synchronize(self._on)

    def carry(self, words: int, times: int) -> tuple[float, float, int]:
        """From pinned memory and back, which is what a link can do."""
        sent = torch.arange(words, dtype=torch.int64).pin_memory()
        there, back = self.reserve(words), torch.empty_like(sent, pin_memory=True)
        there.copy_(sent, non_blocking=True)
        marks = [self.mark()]
        for target, source in ((there, sent), (back, there)):
            for _ in range(times):
                target.copy_(source, non_blocking=True)
            marks.append(self.mark())
        inward, outward = self.seconds(*marks[:2]), self.seconds(*marks[1:])
        self.settle()
        size = 8 * words * times
        return size / inward, size / outward, int(torch.count_nonzero(back != sent))

"""What the NVIDIA driver says without a number: lost devices, failed probes, the GSP, versions.

A row is a pattern and what it means; the first that matches wins. Display errors, load messages
and debug dumps match nothing and read as nothing.
"""

import re
from functools import partial

from probes.kernel_log import address
from probes.kernel_log.meaning import first, row
from probes.kernel_log.reading import CONTEXT, Reading

_NVIDIA = ("NVRM", "nvidia", "uvm", "knvlink")
_GPU = re.compile(rf"(?:GPU|probe of|nvidia)(?: at)? (?:PCI:)?({address.FULL})", re.IGNORECASE)
_INDEX = re.compile(r"\bGPU\d{1,4}\b.*?_kgsp\w+|_kgsp\w+")


_row = partial(row, "nvrm")

# fmt: off
MEANINGS = (
    _row(r"fallen off the bus",
         "fallen_off_bus", "pcie", "fatal", "reboot", "gpu-lost"),
    _row(r"\[NV_ERR_GPU_IS_LOST\]|(?<![=!]= )\bNV_ERR_GPU_IS_LOST|GPU lost from the bus",
         "gpu_lost", "pcie", "fatal", "reboot", "gpu-lost"),
    _row(r"\[NV_ERR_RESET_REQUIRED\]|(?<![=!]= )\bNV_ERR_RESET_REQUIRED|GPU.{0,40}marked for reset",
         "reset_required", "firmware", "fatal", "reset_gpu", "firmware-halted"),
    _row(r"uvm encountered global fatal error",
         "uvm_fatal", "driver", "fatal", "reboot", "driver-hung"),
    _row(r"Rate limiting GSP RPC error prints",
         "gsp_rate_limited", "firmware", "fatal", "reset_gpu", "firmware-halted"),
    _row(r"(?:GSP|_kgsp).{0,80}[Hh]eartbeat timed out",
         "gsp_heartbeat", "firmware", "degraded", "hold", "unknown-code"),
    _row(r"NVIDIA probe routine failed|probe with driver nvidia failed with error"
         r"|\bnvidia: probe of \S+ failed with error",
         "probe_failed", "driver", "fatal", "reboot", "gpu-lost"),
    _row(r"RmInitAdapter failed! ?\(0x[0-9a-fA-F]+:0x[0-9a-fA-F]+:\d+\)|rm_init_adapter failed",
         "init_failed", "driver", "fatal", "reboot", "gpu-lost"),
    _row(r"API mismatch: the client has",
         "api_mismatch", "driver", "degraded", "hold", "config-mismatch"),
    _row(r"not supported by this kernel module|installed in this \D{0,20}system is not supported by"
         r"|driver will ignore this GPU",
         "not_supported", "driver", "degraded", "hold", "config-mismatch"),
    _row(r"knvlink\w*PostRxDet",
         "nvlink_rx_detect", "nvlink", "warning", "none", "none"),
    _row(r"loading NVIDIA UNIX .*Kernel Module",
         "driver_loaded", "driver", "info", "none", "none"),
    _row(r"nvidia.peermem.*detected invalid context",
         "peermem_invalid_context", "driver", "warning", "none", "none"),
    row(CONTEXT, r"The NVIDIA GPU ",
        "gpu_named", "driver", "info", "none", "none"),
)
# fmt: on


def read(message: str) -> Reading | None:
    """What the driver says in a message without an Xid, or None."""
    if not any(word in message for word in _NVIDIA):
        return None
    meaning = first(MEANINGS, message)
    if meaning is None:
        return None
    gpu, index = _GPU.search(message), _INDEX.search(message)
    pci = address.normal(gpu[1]) if gpu else None
    return meaning.of(pci=pci, about=index[0] if index else None)

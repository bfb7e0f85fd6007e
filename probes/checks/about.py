"""What each check reads and why, and what is left out for which reason: for people and for docs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fleet.check import ACTIVE, PAIRS, Check
from fleet.fault import FaultName
from probes.fault_set import strikes
from probes.flaps import LIMITS
from probes.settling import GRACE, WAITS, Why


def _flaps() -> str:
    return " or ".join(f"{many} times in {hours / 3_600:.0f} h" for many, hours in LIMITS)


@dataclass(frozen=True, slots=True)
class About:
    """One check: the questions that it answers, what it reads, and the faults that it can name."""

    asks: str
    reads: str
    faults: tuple[FaultName, ...]
    why: str


ABOUT: Mapping[Check, About] = MappingProxyType(
    {
        Check.KERNEL_LOG: About(
            "what has the kernel said of this node since its boot or its last repair?",
            "/dev/kmsg: Xid, SXid, NVRM, AER, MCE, EDAC, CPER, mlx5 and EFA lines; the namespaces"
            " of jobs that fail: the kubelet's folders of logs",
            tuple(each for each in FaultName if each is not FaultName.MONITOR_SILENT),
            "it speaks when NVML is mute, and of the past; its absence proves nothing",
        ),
        Check.PRESENCE: About(
            "is every GPU on the bus, with the driver, and usable? are there as many as expected?",
            "PCI devices of class 0x0300 and 0x0302, the driver's list, NVML handles (nvidia-smi"
            " where there is no NVML)",
            (
                *(FaultName.GPU_LOST, FaultName.FIRMWARE_HALTED, FaultName.CONFIG_MISMATCH),
                FaultName.MONITOR_SILENT,
            ),
            "on the bus but not with NVML is the driver, on neither is the bus",
        ),
        Check.PCI: About(
            "does every GPU still answer on the bus?",
            "the first word of its PCI config space",
            (FaultName.GPU_LOST,),
            "all ones means gone; it works when the driver hangs",
        ),
        Check.RECOVERY_ACTION: About(
            "what does the driver itself want done?",
            "NVML field 230 by value (the label of nvidia-smi where there is no NVML)",
            (
                *(FaultName.FIRMWARE_HALTED, FaultName.DRIVER_HUNG, FaultName.NVLINK_ERROR),
                *(FaultName.FABRIC_NOT_READY, FaultName.GPU_LOST, FaultName.UNKNOWN_CODE),
            ),
            "the driver's verdict comes before any table; a value that nobody knows is a hand-off",
        ),
        Check.MEMORY: About(
            "volatile uncorrectable errors, pending and failed remaps, spare rows, repairs, storms"
            " of corrected errors",
            "NVML fields 3, 4, 29-31, 144, 145, row remapper, SRAM status, repair and unrepairable"
            " flags",
            (
                *(FaultName.UNCONTAINED_MEMORY, FaultName.CONTAINED_MEMORY),
                FaultName.MEMORY_EXHAUSTED,
            ),
            "volatile counts begin with the driver; lifetime counts accuse nobody",
        ),
        Check.NVLINK: About(
            "is every link up, as fast as its like, and free of errors that rise?",
            "NVML fields 161-165 and 206-214 of every link",
            (FaultName.NVLINK_ERROR,),
            "in MIG mode links read as down by design, and nothing is said",
        ),
        Check.FABRIC: About(
            "has every GPU joined its NVSwitch fabric, and are its C2C links up?",
            "NVML fabric info: state, status, summary, else mask; field 171",
            (FaultName.FABRIC_NOT_READY,),
            "in the mask 2 means no trouble, so the summary is preferred",
        ),
        Check.PCIE: About(
            "is every link as wide as it can be, and free of errors?",
            "NVML link width and its maximum, fields 94 and 180",
            (FaultName.PCIE_DEGRADED,),
            "speed is not looked at: idle GPUs drop it",
        ),
        Check.THERMAL: About(
            "is a GPU slowed by heat or by its supply, and can its power be read?",
            "NVML margin temperature, fields 270 and 271 (time slowed), power usage",
            (FaultName.THERMAL, FaultName.POWER),
            "one look at slowdown bits means nothing: the time slowed since the last round does",
        ),
        Check.ADAPTERS: About(
            "are all network adapters there, up, as fast as their like, and free of errors and"
            " flaps?",
            "/sys/class/infiniband (EFA, mlx5), how often links and carriers went down, lanes and"
            " functions on the PCI bus",
            (FaultName.NIC_MISSING, FaultName.NIC_DEGRADED),
            "fewer than expected is a fault though every link says ACTIVE; EFA always says so; who"
            f" flaps {_flaps()} is sick until as long was free of it",
        ),
        Check.DRIVER: About(
            "is the driver loaded and of one version, does a thread hang in it,"
            " do the fabric manager and IMEX run?",
            "/proc/driver/nvidia/version, /sys/module/nvidia/version, NVML, /proc/*/task/*/stat and"
            " wchan, /proc/uptime, systemd's wants",
            (FaultName.CONFIG_MISMATCH, FaultName.DRIVER_HUNG, FaultName.FABRIC_NOT_READY),
            "the same thread in uninterruptible sleep over three rounds is a hang; a driver that"
            " has not come yet is awaited for 15 minutes after a boot, and then for three rounds",
        ),
        Check.HOST: About(
            "are the host's disks writable and not full, and is its clock synchronised?",
            "/proc/1/mounts, statvfs, adjtimex",
            (FaultName.HOST_DEGRADED,),
            "a wrong clock breaks the order of everybody's events",
        ),
        Check.LEFT_OVERS: About(
            "does a process hold a GPU that no pod owns, or whose pod is gone?",
            "NVML's lists of processes, /proc/PID/cgroup, the kubelet's folder of pods",
            (FaultName.CONFIG_MISMATCH,),
            "it takes the memory of new work and keeps a reset away; only what stays for ten"
            " minutes counts, and daemons of the driver never do",
        ),
        Check.DCGM: About(
            "does DCGM answer where it should, and what do the watches say that somebody set?",
            "dcgmi health and discovery, of an engine that runs already, on the host or as a Pod;"
            " never one of our own",
            (
                *(FaultName.MONITOR_SILENT, FaultName.CONTAINED_MEMORY, FaultName.NVLINK_ERROR),
                *(FaultName.PCIE_DEGRADED, FaultName.THERMAL, FaultName.POWER, FaultName.INFOROM),
                *(FaultName.NIC_DEGRADED, FaultName.UNKNOWN_CODE),
            ),
            "a second witness: gone while NVML answers it moves no node, and what it calls a"
            " failure may be one error in a minute, so it must last",
        ),
        Check.SETTINGS: About(
            "are persistence, ECC, MIG and the set of GPUs as this pool is configured?",
            "NVML modes, now and after the next reset; the driver's list against the first seen",
            (FaultName.CONFIG_MISMATCH,),
            "says nothing where nobody said what is wanted; a GPU that cannot tell its mode has"
            " none switched off",
        ),
        Check.COMPUTE: About(
            "does every GPU compute right, keep what is written to its memory, and is it as fast as"
            " its type is known to be?",
            "patterns in its own allocation, whole-number matrix products against their known sums,"
            " rates against the recorded ones of its type, NVML's clocks, their reasons and the"
            " PCIe generation while it works",
            (
                *(FaultName.WRONG_RESULTS, FaultName.UNCONTAINED_MEMORY, FaultName.SLOW),
                *(FaultName.PCIE_DEGRADED, FaultName.DRIVER_HUNG),
            ),
            "silent corruption shows only where a result is compared; memory that others hold is"
            " unknown, not a fault",
        ),
        Check.ALL_REDUCE: About(
            "do all GPUs of the node add up together, right and fast enough?",
            "all_reduce_perf of the NCCL tests, else our own ranks on torch.distributed",
            (
                *(FaultName.FABRIC_NOT_READY, FaultName.WRONG_RESULTS, FaultName.SLOW),
                FaultName.DRIVER_HUNG,
            ),
            "single GPUs may look well where every pair hangs; it is about the node, so with one"
            " GPU in use it is not begun",
        ),
        Check.DCGM_DIAG: About(
            "what does DCGM's own diagnosis say, at level 1, 2 or 3?",
            "dcgmi diag, JSON or table, of an engine that has just answered",
            (
                *(FaultName.UNCONTAINED_MEMORY, FaultName.CONTAINED_MEMORY, FaultName.INFOROM),
                *(FaultName.PCIE_DEGRADED, FaultName.NVLINK_ERROR, FaultName.FABRIC_NOT_READY),
                *(FaultName.THERMAL, FaultName.POWER, FaultName.SLOW, FaultName.UNKNOWN_CODE),
            ),
            "without an engine it would start its own beside others', so it is not run then; what"
            " fails for how the node is set up is unknown",
        ),
    }
)

BETWEEN_NODES = (
    *(FaultName.NIC_DEGRADED, FaultName.FABRIC_NOT_READY),
    *(FaultName.WRONG_RESULTS, FaultName.SLOW),
)
"""What a trial in pairs can name; `fabric-not-ready` where the nodes share an NVLink domain."""

LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "inforom (A6)": "asking NVML takes long on some boards; Xid 93 and 125, NVML's refusal of a"
        " corrupted one and DCGM's watch tell of it; nvidia-smi's exit status 14 only where NVML is"
        " not to be had",
        "nvidia-smi beside NVML (B4)": "asked only where NVML tells nothing: two tools in the"
        " driver are one too many",
        "DCGM diagnosis of level 4 (J5)": "one to two hours, for a person",
        "rows remapped so far (C5)": "a lifetime count never clears: a metric",
        "effective and symbol bit error rates (E4)": "ratios over the whole life"
        " of a link accuse long after the trouble; the errors that rise are judged",
        "remote errors, discards and successful recoveries of NVLink5 (E4)": "they accuse the far"
        " end, tell of congestion, or are normal",
        "peer-to-peer matrix (E8)": "IOMMU, ACS and containers change its answers",
        "counters 173-179 and 181-183 (F3)": "nobody publishes when they matter; the"
        " kernel's AER lines tell of what hurts",
        "C2C counters 231-233 (E10)": "nobody publishes when they matter; Xid 121, 159 and 173 and"
        " the link's state tell",
        "power smoothing (G6)": "Xid 162-165 tell of it and move nothing",
        "EFA remote errors (H6)": "they accuse another node",
        "two jobs of one namespace that fail on one GPU": "whether they are one work only the API"
        " server says, which the agent does not ask (decision 27)",
        "memory, zombies, process ids (I2)": "the kubelet's own conditions say so",
    }
)
"""Checks of others that are not here, each with its reason."""


_BETWEEN_NODES = (
    "## Between nodes",
    "",
    f"`{PAIRS}` (J4) takes two nodes, so no policy lists it among checks: a trial does it"
    " (`proving.pairs`, docs/operating.md). Two pinned Pods greet each other on the hosts' network;"
    " then one rank a GPU on both adds up with all others, on torch.distributed. A pair that hangs,"
    " breaks off, adds up wrong, or is far slower than others of its trial has failed: *unknown*"
    " of both. Named is only who failed with two partners that did well with others, as"
    f" {', '.join(BETWEEN_NODES)}; for as long as its boot lasts, or until a pair of it does well."
    " A pair of two that both do well with others accuses what is between them: the card says so.",
)


def as_page() -> str:
    """The reference page, from the checks themselves."""
    active = ", ".join(f"`{each}`" for each in ACTIVE)
    lines = [
        "# Checks",
        "",
        "Generated from the checks themselves: `gpumend probe list --page`. Each answers *ok*,"
        " *fault* or *unknown*; what a board or driver does not have is neither fault nor health."
        f" The agent runs all but those that take the GPUs for themselves ({active}) every two"
        " minutes, and every minute while one of their faults stands; a verify runs those that"
        " policy lists. A fault that a check found ends when the same check has passed twice.",
        "",
        "| check | asks | reads | can name | why so |",
        "| --- | --- | --- | --- | --- |",
    ]
    for check, about in ABOUT.items():
        names = ", ".join(_named(check, each) for each in about.faults)
        if check is Check.KERNEL_LOG:
            names = "every fault that a log line can tell"
        lines.append(f"| `{check}` | {about.asks} | {about.reads} | {names} | {about.why} |")
    lines += [
        "",
        "A number is how often in a row a fault must be found before it stands, half a minute"
        " apart.",
        "",
    ]
    lines += _graces()
    lines += [*_BETWEEN_NODES, ""]
    lines += ["## Left out", "", "| what | why |", "| --- | --- |"]
    lines += [f"| {what} | {why} |" for what, why in LEFT_OUT.items()]
    return "\n".join(lines) + "\n"


def _graces() -> list[str]:
    """How long which answers wait after what."""
    rows = [
        f"| `{check}`: `{WAITS[check]}…` | "
        + " | ".join(f"{each:.0f} s" if (each := graces.get(why, 0.0)) else "" for why in Why)
        + " |"
        for check, graces in GRACE.items()
    ]
    return [
        "## Grace",
        "",
        "Links and fabrics take a while after a disturbance. So long these answers are *unknown*,"
        " `<check>:settling`, neither well nor sick; then they are judged. Whatever else a check"
        " finds (a GPU that is lost, the driver's own wish, a hang) it says at once. A verify that"
        " has the time waits for the end of it.",
        "",
        f"| answers | {' | '.join(why.value for why in Why)} |",
        f"| --- |{' --- |' * len(Why)}",
        *rows,
        "",
    ]


def _named(check: Check, fault: FaultName) -> str:
    needed = strikes(check, fault)
    at_once = needed == 1 or check in (Check.RECOVERY_ACTION, *ACTIVE)
    return str(fault) if at_once else f"{fault} ({needed})"

"""How Pods ask not to be evicted: the annotations and labels that the field agreed on. Pure.

They block an eviction of ours and leave the Pod in what a drain waits for.
"""

import re
from datetime import datetime, timedelta

from fleet.instant import parse_instant
from fleet.node import Manifest

_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_DRAIN_LABEL = "cluster.x-k8s.io/drain"

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")


def protection(pod: Manifest, now: datetime) -> str | None:
    """What protects the Pod, as it is written on it, or None."""
    metadata = pod["metadata"]
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    wish = str(annotations.get(_DO_NOT_DISRUPT, ""))
    if wish == "true" or _still(wish, pod, now):
        return f"{_DO_NOT_DISRUPT}={wish}"
    if str(annotations.get(_SAFE_TO_EVICT, "")).lower() == "false":
        return f"{_SAFE_TO_EVICT}=false"
    if labels.get(_DRAIN_LABEL) in ("skip", "wait-completed"):
        return f"{_DRAIN_LABEL}={labels[_DRAIN_LABEL]}"
    return None


def _still(wish: str, pod: Manifest, now: datetime) -> bool:
    """A duration protects from the Pod's start on; what is no duration protects from nothing."""
    length = _duration(wish)
    started = (pod.get("status") or {}).get("startTime")
    if length is None:
        return False
    return started is None or now < parse_instant(started) + length


def _duration(text: str) -> timedelta | None:
    """A Go duration: `1h30m`."""
    found = _DURATION.findall(text)
    if not found or "".join(amount + unit for amount, unit in found) != text:
        return None
    return timedelta(seconds=sum(float(amount) * _UNITS[unit] for amount, unit in found))

"""The kubelet of a simulated machine: what the engine may rely on is what a real one does too.

Kept from a real kubelet, and tested in `tests/simulator/test_kubelet.py`:

- It registers its Node once and never replaces labels, taints or annotations of others; it says
  `Ready` and renews its Lease in `kube-node-lease`; a new boot id appears in `status.nodeInfo` with
  `Ready=False` first, and `Ready=True` follows. A machine that is off says nothing.
- A pod bound to the node is admitted, runs and gets its status. A container's termination message
  is what stands in the file at `terminationMessagePath`, cut at 4,096 bytes; its exit code decides
  the phase of a pod that is never restarted; `activeDeadlineSeconds` kills it (`DeadlineExceeded`).
- A deleted pod gets SIGTERM, its grace, then SIGKILL; only then the kubelet deletes the object with
  grace 0 and the pod's UID.
- With the machine every container dies. After the boot, a pod that is never restarted has failed
  (`ContainerStatusUnknown`, 137), and every other one runs again.

Played down: one container a pod; no images (`gpumend` in a command is the installed program); no
network. A container that mounts the host's `/` really runs, with that mount mapped to the machine's
directory; every other one is only a state that holds its GPUs.
"""

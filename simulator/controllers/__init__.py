"""Stand-ins for what runs in every cluster beside the engine, as small as they can be honest.

Node lifecycle, the cloud's labels and deletions of Nodes, the collector of pods without a Node, the
owners of pods (like a ReplicaSet and a DaemonSet, with a scheduler inside), and the disruption
controller behind PodDisruptionBudgets. None of them knows of gpumend.
"""

READY_LINE = "controllers are up"

"""Use the GPUs, and see whether what comes out is right: the active checks of idle, held nodes.

`child` runs in a disposable process of its own, and only there is a GPU library loaded. The kernels
are written once over the small protocol in `backend`; `view` reads what the child printed. What it
means, which GPUs may be used, and for how long, is the business of the checks (`probes/checks/`).
"""

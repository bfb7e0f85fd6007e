"""A fleet that breaks on purpose: API server, kubelets, hardware; one seed."""

"""Time and order only: decisions live in `policies`, effects in `activities`."""

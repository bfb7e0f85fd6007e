"""Which gpumend this is. An agent says so in its Lease, and has no room for package metadata."""

VERSION = "0.1.0"

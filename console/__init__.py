"""The `gpumend` command."""

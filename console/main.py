"""Entry point of the `gpumend` command; each subcommand lives in a module of its own."""


def main() -> int:
    """Run the command line and return its exit status."""
    return 2

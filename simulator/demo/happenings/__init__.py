"""What happens to a fleet by the script, a module each kind: hardware, players, clouds, people."""

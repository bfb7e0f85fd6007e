"""What is allowed and what comes next: pure functions over the words of `fleet`."""

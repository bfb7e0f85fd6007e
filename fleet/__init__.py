"""The words of gpumend and the ports it needs: frozen dataclasses, no I/O, nothing of ours."""

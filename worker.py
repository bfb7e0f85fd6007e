"""Composition root: settings, adapters, registration, roles, graceful stop. Nothing imports it."""

"""What we do to the world, one module a noun; only `adapters` imports a vendor client."""

"""The only place that imports a vendor's client; each translates its errors to `fleet.errors`."""

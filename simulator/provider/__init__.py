"""A reference provider: what `docs/provider-openapi.yaml` asks for, over machines that are played.

It shares no code with the engine; the OpenAPI file is what both are held to.
"""

from simulator.provider.hands import Hands, PlayedMachines
from simulator.provider.server import ProviderServer
from simulator.provider.trouble import Fault

__all__ = ["Fault", "Hands", "PlayedMachines", "ProviderServer"]

"""How values become JSON for Temporal and come back: pydantic's way, which serves dataclasses too.

What does not belong here: what the values mean, and the client that carries them.
"""

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import CompositePayloadConverter, DataConverter

_SHARED = PydanticPayloadConverter()


class SharedPayloadConverter(CompositePayloadConverter):
    """Pydantic's converters, and what they know of our types, once a process.

    The SDK makes a payload converter for each workflow instance. One with a memory of its own works
    out the same types for every incident anew, which costs more than the rest of a short run.
    The memory holds the types it was asked for, so what a workflow takes and is given is declared
    in packages that pass through the sandbox; a type of the sandbox's own would keep that alive.
    """

    def __init__(self) -> None:
        super().__init__(*_SHARED.converters.values())


DATA_CONVERTER = DataConverter(payload_converter_class=SharedPayloadConverter)

"""What may be said with a request of another model: where its outputs should lie, and to which trace it belongs."""
import enum
import json
from typing import Optional, Tuple

from nereid_host.answer import AnswerKey


class MemoryType(enum.IntEnum):
    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


class PreferredMemory:
    """Accepted as in Triton; outputs are always in the memory of the CPU."""

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        if not isinstance(preferred_memory_type, MemoryType) or not isinstance(preferred_device_id, int):
            raise TypeError(
                "PreferredMemory() takes a memory type such as TRITONSERVER_MEMORY_CPU and a device id, got %r and %r"
                % (type(preferred_memory_type), type(preferred_device_id))
            )
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class InferenceTrace:
    """Of a received request, it also tells a request made with it whom it is made for."""

    def __init__(self) -> None:
        self.parents: Tuple[AnswerKey, ...] = ()
        self._traceparent: Optional[str] = None

    @classmethod
    def of_request(cls, key: AnswerKey, traceparent: Optional[str]) -> "InferenceTrace":
        trace = cls()
        trace.parents = (key,)
        trace._traceparent = traceparent
        return trace

    def get_context(self) -> Optional[str]:
        """The OpenTelemetry context as JSON text; None where there is none."""
        return None if self._traceparent is None else json.dumps({"traceparent": self._traceparent})

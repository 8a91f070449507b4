"""The backends that run a framework's own model files: one module each, imported only by the host that serves it.
host.py asks here which one serves a backend; what they share is in framework_model.py."""
import importlib
from typing import Any, Dict, Optional, Tuple

_ADAPTERS: Dict[str, Tuple[str, str]] = {
    "pytorch": ("pytorch_model", "PytorchModel"),
    "tensorflow": ("tensorflow_model", "TensorflowModel"),
    "openvino": ("openvino_model", "OpenvinoModel"),
    "tensorrt": ("tensorrt_model", "TensorrtModel"),
}


def find_adapter(backend: str) -> Optional[Any]:
    """The class that serves the models of a framework, None for a model in Python."""
    found = _ADAPTERS.get(backend)
    if found is None:
        return None
    return getattr(importlib.import_module("%s.%s" % (__name__, found[0])), found[1])

"""The backends that run a framework's own model files: one module each, imported only by the host that serves it.
host.py asks here which one serves a backend; what they share is in framework_model.py. Engines of language models
answer requests as a model in Python does: these have a class in the place of a model.py."""
import importlib
from typing import Any, Dict, Optional, Tuple

_ADAPTERS: Dict[str, Tuple[str, str]] = {
    "pytorch": ("pytorch_model", "PytorchModel"),
    "tensorflow": ("tensorflow_model", "TensorflowModel"),
    "openvino": ("openvino_model", "OpenvinoModel"),
    "tensorrt": ("tensorrt_model", "TensorrtModel"),
}

_MODEL_CLASSES: Dict[str, Tuple[str, str]] = {
    "vllm": ("vllm_model", "VllmModel"),
    "tensorrtllm": ("tensorrtllm_model", "TensorrtLlmModel"),
}


def find_adapter(backend: str) -> Optional[Any]:
    """The class that serves the models of a framework, None for a model in Python."""
    return _find(_ADAPTERS, backend)


def find_model_class(backend: str) -> Optional[Any]:
    """The class in the place of the TritonPythonModel of a model.py; None where the model has its own."""
    return _find(_MODEL_CLASSES, backend)


def _find(table: Dict[str, Tuple[str, str]], backend: str) -> Optional[Any]:
    found = table.get(backend)
    if found is None:
        return None
    return getattr(importlib.import_module("%s.%s" % (__name__, found[0])), found[1])

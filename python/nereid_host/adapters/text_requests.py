"""What the LLM backends share in reading requests and completing configs. Knows no engine, and is tested without one."""
import importlib.util
import os
from typing import Any, Dict, Optional, Sequence

import numpy as np

from nereid_host.status import StatusError
from nereid_host.tensor import Tensor

# Set for the processes that an engine starts: they must not outlive the host, which may be killed, for they hold the
# memory of the GPU. Read by __main__.py, which such a process imports.
CHILDREN_DIE = "NEREID_CHILDREN_DIE_WITH_HOST"


def tensor_spec(name: str, data_type: str, dims: Sequence[int], is_optional: bool = False) -> Dict[str, Any]:
    """As a ModelConfig's add_input and add_output take it."""
    spec: Dict[str, Any] = {"name": name, "data_type": data_type, "dims": list(dims)}
    return {**spec, "optional": True} if is_optional else spec


def add_missing(config: Any, inputs: Sequence[Dict[str, Any]], outputs: Sequence[Dict[str, Any]]) -> None:
    """What the config has stays as it is, as in Triton's backends."""
    known = config.as_dict()
    names = {kind: {tensor["name"] for tensor in known[kind]} for kind in ("input", "output")}
    for spec in inputs:
        if spec["name"] not in names["input"]:
            config.add_input(spec)
    for spec in outputs:
        if spec["name"] not in names["output"]:
            config.add_output(spec)


def values_of(request: Any, name: str) -> Optional[np.ndarray]:
    """All elements of an input in one dimension; None when the request has it not."""
    for tensor in request.inputs():
        if tensor.name() == name:
            return tensor.as_numpy().reshape(-1)
    return None


def scalar_of(request: Any, name: str) -> Any:
    """The only element of an input, of a plain type of Python; None when the request has it not."""
    values = values_of(request, name)
    if values is None:
        return None
    if values.size != 1:
        raise ValueError("Expected a scalar tensor for tensor %s" % name)
    return text_of_element(values[0])


def text_of_element(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value.item() if isinstance(value, np.generic) else value


def flag_of(request: Any, name: str) -> bool:
    return bool(scalar_of(request, name))


def text_tensor(name: str, texts: Sequence[str]) -> Tensor:
    return Tensor(name, np.array([text.encode("utf-8") for text in texts], dtype=np.object_))


def require_package(backend: str, module: str, package: str) -> None:
    """Says how to get a package that is missing, without the seconds that its import takes."""
    if importlib.util.find_spec(module) is not None:
        return
    python = os.environ.get("NEREID_PYTHON") or "python3"
    raise StatusError(
        "INTERNAL",
        "the %s backend needs %s, which %s does not have; install it with: %s -m pip install %s"
        % (backend, module, python, python, package),
    )


def resolve_model(name: Any, folder: str) -> Any:
    """A model that lies in the version directory is found there; anything else is the engine's to find."""
    if isinstance(name, str) and name != "" and os.path.exists(os.path.join(folder, name)):
        return os.path.join(folder, name)
    return name


def is_true(config: Dict[str, Any], parameter: str) -> bool:
    """Whether a parameter of the config says "true"."""
    text = (config.get("parameters") or {}).get(parameter, {}).get("string_value", "")
    return text.lower() == "true"



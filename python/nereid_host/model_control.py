"""load_model, unload_model and is_model_ready: what a model may do with the other models of the server."""
import re
from typing import Any, Dict, Optional

from nereid_host.call_frame import Payload
from nereid_host.model_exception import TritonModelException
from nereid_host.runtime import INITIALIZING, RUNNING, runtime

_FILE_PREFIX = "file:"
_INTEGER_START = re.compile(r"\s*[+-]?[0-9]+")


def load_model(model_name: str, config: str = "", files: Optional[Dict[str, bytes]] = None) -> None:
    """Loads and waits. `config` is JSON text; `files` are contents by "file:" and the path in the model's directory."""
    _check_text("model_name", model_name)
    _check_text("config", config)
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            "failed to load model '%s', files should be a dictionary of file paths and file contents" % model_name
        )
    payload = Payload()
    sent = []
    for path, content in (files or {}).items():
        if not isinstance(path, str) or not isinstance(content, bytes):
            raise TypeError("files must be bytes by their paths, found %r by %r" % (type(content), type(path)))
        if path.startswith(_FILE_PREFIX):
            path = path[len(_FILE_PREFIX) :]
        sent.append({"path": path, **payload.add(content)})
    message = {"kind": "load", "model": model_name, "config": config, "files": sent}
    _ask("Failed to load model: ", message, payload)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Begins the unload; requests that the model has go on to their end."""
    _check_text("model_name", model_name)
    message = {"kind": "unload", "model": model_name, "isDependents": bool(unload_dependents)}
    _ask("Failed to unload model: ", message)


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    _check_text("model_name", model_name)
    _check_text("model_version", model_version)
    prefix = "Failed to check model readiness: "
    version = ""
    if model_version != "":
        version = str(_version_of(model_version, prefix + request_failure("")))
    return _ask(prefix, {"kind": "ready", "model": model_name, "version": version})


def request_failure(message: str) -> str:
    """How Triton begins what the server says against a request that is not an inference."""
    return "Failed to process the request for model '%s', message: %s" % (runtime.instance_name, message)


def _ask(prefix: str, message: Dict[str, Any], payload: Optional[Payload] = None) -> Any:
    if runtime.calls is None or runtime.phase not in (INITIALIZING, RUNNING):
        raise TritonModelException(
            prefix + "models are loaded and unloaded in initialize and execute, and nowhere else it is supported"
        )
    try:
        return runtime.calls.ask(message, payload)
    except TritonModelException as error:
        raise TritonModelException(prefix + request_failure(str(error))) from None


def _version_of(text: str, prefix: str) -> int:
    """Read as C++ reads it: digits at the beginning are enough."""
    start = "%sfailed to get model version from specified version string '%s'" % (prefix, text)
    found = _INTEGER_START.match(text)
    if found is None:
        raise TritonModelException("%s (details: stol), version should be an integral value > 0" % start)
    version = int(found.group())
    if version < 0:
        raise TritonModelException("%s, version should be an integral value > 0" % start)
    return version


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError("%s must be a text, found %r" % (name, type(value)))

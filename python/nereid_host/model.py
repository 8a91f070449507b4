"""One instance of a Python model: finds and imports the model file, completes the config, and calls the model's
class. Raises what the model raises; the host makes the texts."""
import importlib
import importlib.util
import json
import os
import sys
from types import CoroutineType, ModuleType
from typing import Any, Dict, List, Optional

from nereid_host.model_config import ModelConfig, complete_defaults
from nereid_host.runtime import runtime
from nereid_host.status import StatusError

_KIND_PREFIX = "KIND_"

# Fields of a config that Triton does not have; models read its config strictly.
_OWN_FIELDS = ("router", "version_labels")


class PythonModel:
    def __init__(self, load: Dict[str, Any], backend_file: Optional[str], model_class: Optional[Any] = None) -> None:
        """`load` is the header of the LOAD frame; `backend_file` the model.py of a Python-based backend, `model_class`
        what stands in the place of one."""
        self._load = load
        self._placement: Dict[str, Any] = load["placement"]
        self._instance: Any = None
        runtime.model_directory = load["versionDirectory"]
        runtime.instance_name = self.name
        # Python would write caches into the user's model repository, where a poll takes them for changes.
        sys.dont_write_bytecode = True
        if model_class is not None:
            self._class = model_class
            return
        module = self._import_own() if backend_file is None else _import_backend(backend_file)
        self._class = getattr(module, "TritonPythonModel")

    @property
    def name(self) -> str:
        """The instance's name, which is what Triton's texts say."""
        return self._placement["name"]

    def complete_config(self) -> Dict[str, Any]:
        config = self._load["config"]
        complete = getattr(self._class, "auto_complete_config", None)
        if not self._load["isAutoComplete"] or complete is None:
            return config
        completed = complete(ModelConfig(json.dumps(config)))
        if not isinstance(completed, ModelConfig):
            raise StatusError(
                "INTERNAL",
                "auto_complete_config function in model '%s' must return a valid pb.ModelConfig object."
                % self._load["modelName"],
            )
        return complete_defaults(completed.as_dict())

    def initialize(self, config: Dict[str, Any]) -> None:
        self._instance = self._class()
        if hasattr(self._instance, "initialize"):
            self._instance.initialize(self._arguments(config))

    def execute(self, requests: List[Any]) -> Any:
        if not hasattr(self._instance, "execute"):
            path = os.path.join(self._load["versionDirectory"], self._file_name())
            raise StatusError("INTERNAL", "Python model %s does not implement `execute` method." % path)
        return self._instance.execute(requests)

    @property
    def has_ready_check(self) -> bool:
        return hasattr(self._instance, "is_ready")

    def is_ready(self) -> bool:
        """What the model says; a coroutine is waited for."""
        answer = self._instance.is_ready()
        if isinstance(answer, CoroutineType):
            import asyncio

            answer = asyncio.run(answer)
        if not isinstance(answer, bool):
            raise StatusError("INTERNAL", "is_ready() must return a boolean value")
        return answer

    def finalize(self) -> None:
        if hasattr(self._instance, "finalize"):
            self._instance.finalize()

    def _arguments(self, config: Dict[str, Any]) -> Dict[str, str]:
        kind = self._placement["kind"]
        known = {name: value for name, value in config.items() if name not in _OWN_FIELDS}
        return {
            "model_config": json.dumps(known, ensure_ascii=False, separators=(",", ":")),
            "model_instance_kind": kind[len(_KIND_PREFIX) :] if kind.startswith(_KIND_PREFIX) else kind,
            "model_instance_name": self.name,
            "model_instance_device_id": str(self._placement["deviceId"]),
            "model_repository": self._load["modelDirectory"],
            "model_version": str(self._load["version"]),
            "model_name": self._load["modelName"],
        }

    def _file_name(self) -> str:
        return self._load["config"].get("default_model_filename") or "model.py"

    def _import_own(self) -> ModuleType:
        """As module `1.model`, so that siblings are found directly and relatively."""
        version_directory = self._load["versionDirectory"]
        file_name = self._file_name()
        path = os.path.join(version_directory, file_name)
        if not os.path.exists(path):
            raise StatusError("INTERNAL", "Python model file not found in '%s'" % path)
        if not file_name.endswith(".py"):
            raise StatusError(
                "INTERNAL", "Model name must end with '.py'. Model name is \"%s\"." % file_name
            )
        sys.path.append(version_directory)
        sys.path.append(os.path.dirname(version_directory))
        return importlib.import_module("%s.%s" % (os.path.basename(version_directory), file_name[: -len(".py")]))


def _import_backend(path: str) -> ModuleType:
    """As module `model`, with the modules beside it in reach."""
    sys.path.append(os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("model", path)
    if spec is None or spec.loader is None:
        raise StatusError("INTERNAL", "Python model file not found in '%s'" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["model"] = module
    spec.loader.exec_module(module)
    return module

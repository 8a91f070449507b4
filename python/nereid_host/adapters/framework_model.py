"""What the adapters of frameworks share. Such a model has the life cycle of PythonModel (model.py) and is called by
host.py and batch_runner.py in its place; it runs a batch at once where the config allows batches.

A subclass says how to complete a config, to open the file and to run arrays; it never sees requests.
"""
import copy
import importlib
import os
import sys
from typing import Any, Dict, List, Sequence, Union

from nereid_host.adapters.array_batch import Arrays, arrays_of, can_join, join, row_count_of, split, tensor_of
from nereid_host.adapters.parameters import Parameters
from nereid_host.model_config import complete_defaults
from nereid_host.response import InferenceResponse
from nereid_host.runtime import runtime
from nereid_host.states import with_sequence_tensors
from nereid_host.status import StatusError


class FrameworkModel:
    # How the text of a failed execution begins.
    execute_failure = "execute failure"
    # The file of a model whose config names none.
    default_filename = ""

    def __init__(self, load: Dict[str, Any]) -> None:
        """`load` is the header of the LOAD frame."""
        self.load = load
        self.placement: Dict[str, Any] = load["placement"]
        self.model_name: str = load["modelName"]
        self.config: Dict[str, Any] = load["config"]
        runtime.model_directory = load["versionDirectory"]
        # Python would write caches into the user's model repository, where a poll takes them for changes.
        sys.dont_write_bytecode = True
        self.import_framework()

    # What a subclass provides.

    def import_framework(self) -> None:
        raise NotImplementedError

    def complete(self, config: Dict[str, Any]) -> Dict[str, Any]:
        """Fills the config from the model file. Frameworks whose files do not tell leave it."""
        return config

    def start(self) -> None:
        """Opens the model as `self.config` says."""
        raise NotImplementedError

    def run(self, inputs: Arrays) -> Arrays:
        """The outputs, all that the config names."""
        raise NotImplementedError

    # What the host calls.

    @property
    def name(self) -> str:
        return self.placement["name"]

    def complete_config(self) -> Dict[str, Any]:
        if not self.load["isAutoComplete"]:
            return self.config
        try:
            return complete_defaults(self.complete(copy.deepcopy(self.config)))
        except Exception as error:
            raise self._load_error(error) from error

    def initialize(self, config: Dict[str, Any]) -> None:
        self.config = with_sequence_tensors(config)
        try:
            self.start()
        except Exception as error:
            raise self._load_error(error) from error

    def execute(self, requests: Sequence[Any]) -> List[Union[InferenceResponse, StatusError]]:
        """`requests` as a model in Python gets them; an error for each that failed."""
        arrays = [arrays_of(request.inputs()) for request in requests]
        if len(requests) > 1 and self.config["max_batch_size"] > 0 and can_join(arrays):
            return self._run_together(arrays)
        return [response for inputs in arrays for response in self._run_together([inputs])]

    has_ready_check = False

    def finalize(self) -> None:
        """The process ends, and with it what the framework holds."""

    # What subclasses use.

    @property
    def parameters(self) -> Parameters:
        return Parameters(self.config.get("parameters") or {})

    def find_file(self) -> str:
        filename = self.config.get("default_model_filename") or self.default_filename
        path = os.path.join(self.load["versionDirectory"], filename)
        if not os.path.exists(path):
            raise StatusError(
                "UNAVAILABLE", "unable to find '%s' for model instance '%s'" % (path, self.model_name)
            )
        return path

    def default_max_batch_size(self) -> int:
        """What a model that can batch gets when its config does not say: 4, as in Triton."""
        try:
            return int(self.load["backendConfig"].get("default-max-batch-size", "4"))
        except ValueError:
            return 4

    def _run_together(self, arrays: Sequence[Arrays]) -> List[Union[InferenceResponse, StatusError]]:
        """One response for each request."""
        try:
            outputs = self.run(join(arrays))
            row_counts = [row_count_of(inputs) for inputs in arrays] if len(arrays) > 1 else [0]
            parts = {name: split(array, row_counts) for name, array in outputs.items()}
            return [
                InferenceResponse([tensor_of(name, parts[name][position]) for name in parts])
                for position in range(len(arrays))
            ]
        except Exception as error:
            return [self._execute_error(error)] * len(arrays)

    def _execute_error(self, error: Exception) -> StatusError:
        if isinstance(error, StatusError):
            return error
        return StatusError("INTERNAL", "%s: %s" % (self.execute_failure, error))

    def _load_error(self, error: Exception) -> StatusError:
        if isinstance(error, StatusError):
            return error
        return StatusError("INTERNAL", "failed to load model '%s': %s" % (self.model_name, error))


def import_package(backend: str, module: str, package: str) -> Any:
    """Imports a framework, or says how to get it. `package` is what pip calls it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        python = os.environ.get("NEREID_PYTHON") or "python3"
        raise StatusError(
            "INTERNAL",
            "the %s backend needs %s, which %s does not have; install it with: %s -m pip install %s"
            % (backend, module, python, python, package),
        ) from None

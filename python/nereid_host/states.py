"""The implicit states of sequences (`sequence_batching.state`), kept in the host so that they never travel. The twin of
src/backend/sequence-states.ts and initial-states.ts; docs/host-protocol.md tells the rules. Called by batch_runner.py.

  slot 1: | state 0 | state 1 | ...    made at the start of a sequence, freed at its end

Triton's Python backend gives models the initial state with every request and takes none back, so a model in Python is
served the same way; frameworks go on from the state that the model last gave.
"""
import copy
import math
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from nereid_host.execute_frame import STATE_END, STATE_START, SentRequest, control_type
from nereid_host.response import InferenceResponse
from nereid_host.status import StatusError
from nereid_host.tensor import DATATYPE_NUMBERS, NUMPY_TYPES, TYPE_BYTES, Tensor

# The length in front of each BYTES element; an empty one is nothing else.
_LENGTH_BYTES = 4
_BF16_BYTES = 2


class _State(NamedTuple):
    # The batch dimension, 1, included where the model batches.
    shape: Sequence[int]
    # An array of bytes.
    data: np.ndarray


class SequenceStates:
    def __init__(self, config: Dict[str, Any], model_directory: str, is_kept: bool) -> None:
        """Without `is_kept` every request gets the initial states."""
        states = config["sequence_batching"]["state"]
        is_batching = config["max_batch_size"] > 0
        self._model_name: str = config["name"]
        self._is_kept = is_kept
        self._input_names = [state["input_name"] for state in states]
        self._positions = {state["output_name"]: position for position, state in enumerate(states)}
        self._datatypes = [DATATYPE_NUMBERS[state["data_type"]] for state in states]
        self._initial = [_read_initial(state, model_directory, is_batching) for state in states]
        self._slots: Dict[int, List[_State]] = {}

    def feed(self, request: SentRequest) -> Optional[StatusError]:
        """Adds the states to the request's inputs; the error where they are gone."""
        slot = request.state_slot
        if slot == 0:
            states = [_State(shape, np.zeros_like(data)) for shape, data in self._initial]
        elif not self._is_kept:
            states = self._copy_initial()
        else:
            if request.state_flags & STATE_START:
                self._slots[slot] = self._copy_initial()
            if slot not in self._slots:
                return StatusError(
                    "UNAVAILABLE",
                    "the state of the sequence was lost when an instance of model '%s' was restarted; "
                    "start the sequence again" % self._model_name,
                )
            states = self._slots[slot]
        # Warmup may bring a state of its own.
        brought = {tensor.name() for tensor in request.inputs} if slot == 0 else ()
        for name, datatype, (shape, data) in zip(self._input_names, self._datatypes, states):
            if name not in brought:
                request.inputs.append(Tensor.received(name, datatype, shape, data))
        return None

    def keep(self, requests: Sequence[SentRequest], returned: Sequence[Any]) -> None:
        """Takes the new states from what the model returned; a request that failed leaves its slot as it was."""
        for request, response in zip(requests, returned):
            states = self._slots.get(request.state_slot)
            if states is None:
                continue
            if request.state_flags & STATE_END:
                del self._slots[request.state_slot]
            elif isinstance(response, InferenceResponse) and response.error() is None:
                for tensor in response.output_tensors():
                    position = self._positions.get(tensor.name())
                    if position is not None:
                        # The bytes of an answer belong to the framework.
                        data = np.array(np.frombuffer(tensor.to_bytes(), np.uint8))
                        states[position] = _State(tensor.shape(), data)

    def _copy_initial(self) -> List[_State]:
        return [_State(shape, data.copy()) for shape, data in self._initial]


def with_sequence_tensors(config: Dict[str, Any]) -> Dict[str, Any]:
    """The config with controls and states as further inputs and outputs, which is what they are to a framework."""
    batching = config.get("sequence_batching")
    if not batching:
        return config
    full = copy.deepcopy(config)
    input_names = {tensor["name"] for tensor in full["input"]}
    output_names = {tensor["name"] for tensor in full["output"]}
    for control in batching.get("control_input", []):
        if control["name"] not in input_names:
            data_type = control_type(control["control"][0])
            full["input"].append({"name": control["name"], "data_type": data_type, "dims": [1]})
    for state in batching.get("state", []):
        tensor = {"data_type": state["data_type"], "dims": state["dims"]}
        if state["input_name"] not in input_names:
            full["input"].append({"name": state["input_name"], **tensor})
        if state["output_name"] not in output_names:
            full["output"].append({"name": state["output_name"], **tensor})
    return full


def _read_initial(state: Dict[str, Any], model_directory: str, is_batching: bool) -> _State:
    initial = (state.get("initial_state") or [None])[0]
    # A dimension that varies starts as 1.
    dims = [1 if dim == -1 else dim for dim in state["dims"]] if initial is None else initial["dims"]
    shape = [1, *dims] if is_batching else dims
    datatype = DATATYPE_NUMBERS[state["data_type"]]
    byte_length = math.prod(dims) * _element_bytes(datatype)
    file_name = None if initial is None else initial.get("data_file")
    if file_name is None:
        return _State(shape, np.zeros(byte_length, np.uint8))
    content = _read_whole(os.path.join(model_directory, "initial_state", file_name))
    if datatype == TYPE_BYTES:
        return _State(shape, np.array(np.frombuffer(content, np.uint8)))
    if len(content) < byte_length:
        raise StatusError(
            "INVALID_ARG",
            "initial_state setting expects %d bytes, but the data provided from %sonly has %d bytes."
            % (byte_length, file_name, len(content)),
        )
    return _State(shape, np.array(np.frombuffer(content, np.uint8, byte_length)))


def _element_bytes(datatype: int) -> int:
    if datatype == TYPE_BYTES:
        return _LENGTH_BYTES
    numpy_type = NUMPY_TYPES.get(datatype)
    return _BF16_BYTES if numpy_type is None else np.dtype(numpy_type).itemsize


def _read_whole(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise StatusError(
            "INTERNAL", "failed to open text file for read %s: %s" % (path, error.strerror)
        ) from None

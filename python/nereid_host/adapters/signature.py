"""What a model file says about its tensors, against what the config says: completion and checks, with the rules and
the words of Triton. Called by the adapters whose files tell; pure."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from nereid_host.status import StatusError


class TensorSpec(NamedTuple):
    name: str
    # As in the config, "TYPE_FP32"; TYPE_INVALID for what Triton does not have.
    data_type: str
    # With the batch dimension, -1 where it is free; None when not even the rank is known.
    shape: Optional[List[int]]


class Signature(NamedTuple):
    inputs: List[TensorSpec]
    outputs: List[TensorSpec]


def complete_from_signature(config: Dict[str, Any], signature: Signature, batch_size: int) -> Dict[str, Any]:
    """`batch_size` is what a model that can batch gets when the config does not say."""
    can_batch = all(spec.shape and spec.shape[0] == -1 for spec in (*signature.inputs, *signature.outputs))
    if config["max_batch_size"] > 0 and not can_batch:
        raise StatusError(
            "INTERNAL",
            "unable to autofill for '%s', configuration specified max-batch %d but model signature does not "
            "support batching" % (config["name"], config["max_batch_size"]),
        )
    is_batching = can_batch and batch_size > 0 and _is_batch_meant(config, signature)
    if config["max_batch_size"] == 0 and is_batching:
        config["max_batch_size"] = batch_size
    add_dynamic_batching(config)
    _complete_tensors(config, "input", signature.inputs, is_batching)
    _complete_tensors(config, "output", signature.outputs, is_batching)
    return config


def add_dynamic_batching(config: Dict[str, Any]) -> None:
    has_scheduler = any(name in config for name in ("dynamic_batching", "sequence_batching", "ensemble_scheduling"))
    if config["max_batch_size"] > 1 and not has_scheduler:
        config["dynamic_batching"] = {}


def new_tensor(spec: TensorSpec, is_batching: bool) -> Dict[str, Any]:
    tensor = {"name": spec.name, "data_type": "TYPE_INVALID", "dims": []}
    _fill(tensor, spec, is_batching)
    return tensor


def _complete_tensors(
    config: Dict[str, Any], kind: str, specs: Sequence[TensorSpec], is_batching: bool
) -> None:
    """Fills the tensors that the config names and adds missing inputs; outputs only when it names none."""
    tensors: List[Dict[str, Any]] = config[kind]
    given = {tensor["name"]: tensor for tensor in tensors}
    is_adding = kind == "input" or not tensors
    for spec in specs:
        if spec.name in given:
            _fill(given[spec.name], spec, is_batching)
        elif is_adding and spec.name not in _names_of_control(config):
            tensors.append(new_tensor(spec, is_batching))


def _fill(tensor: Dict[str, Any], spec: TensorSpec, is_batching: bool) -> None:
    if tensor.get("data_type", "TYPE_INVALID") == "TYPE_INVALID":
        tensor["data_type"] = spec.data_type
    if tensor["dims"] or spec.shape is None:
        return
    dims = spec.shape[1:] if is_batching else spec.shape
    # A config cannot say "no dimensions", so a row of one element is reshaped.
    tensor["dims"] = list(dims) or [1]
    if not dims:
        tensor["reshape"] = {"shape": []}


def _names_of_control(config: Dict[str, Any]) -> List[str]:
    """Inputs that the scheduler makes: they are no inputs of a request."""
    sequence = config.get("sequence_batching") or {}
    names = [control["name"] for control in sequence.get("control_input", [])]
    names += [state["input_name"] for state in sequence.get("state", [])]
    for batch_input in config.get("batch_input", []):
        names += batch_input["target_name"]
    return names


def _is_batch_meant(config: Dict[str, Any], signature: Signature) -> bool:
    """A free first dimension may be a batch or not; what the config says about ranks decides."""
    hints: List[bool] = []
    is_any_given = False
    for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
        for tensor in config[kind]:
            is_any_given = True
            if tensor.get("allow_ragged_batch"):
                return True
            dims = dims_of(tensor)
            spec = next((spec for spec in specs if spec.name == tensor["name"]), None)
            if spec is not None and spec.shape and dims:
                hints.append(len(dims) == len(spec.shape) - 1)
    if len(set(hints)) > 1:
        raise StatusError(
            "INTERNAL",
            "unable to autofill for '%s', model tensor configurations are contradicting each other in terms of "
            "whether batching is supported" % config["name"],
        )
    return hints[0] if hints else not is_any_given or config["max_batch_size"] > 0


def dims_of(tensor: Dict[str, Any]) -> List[int]:
    """The dims that the model sees."""
    reshape = tensor.get("reshape")
    return tensor["dims"] if reshape is None else reshape.get("shape", [])


def check_names(config: Dict[str, Any], signature: Signature) -> None:
    """All inputs of the model, no others, and only outputs that it has."""
    if not _names_of_control(config) and len(config["input"]) != len(signature.inputs):
        raise input_count_error(config, len(signature.inputs))
    for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
        allowed = [spec.name for spec in specs]
        for tensor in config[kind]:
            if tensor["name"] not in allowed:
                raise StatusError(
                    "INVALID_ARG",
                    "unexpected inference %s '%s', allowed %ss are: %s"
                    % (kind, tensor["name"], kind, ", ".join(sorted(allowed))),
                )


def input_count_error(config: Dict[str, Any], provided: int) -> StatusError:
    return StatusError(
        "INVALID_ARG",
        "unable to load model '%s', configuration expects %d inputs, model provides %d"
        % (config["name"], len(config["input"]), provided),
    )


def check_tensors(config: Dict[str, Any], signature: Signature) -> None:
    """Datatypes and shapes of the tensors that the config names; after check_names."""
    for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
        by_name = {spec.name: spec for spec in specs}
        for tensor in config[kind]:
            spec = by_name[tensor["name"]]
            if not tensor.get("allow_ragged_batch"):
                check_shape(config, tensor, spec.shape, is_exact=kind == "output")
            if tensor["data_type"] != spec.data_type:
                raise StatusError(
                    "INVALID_ARG",
                    "unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s"
                    % (config["name"], tensor["data_type"], kind, spec.name, spec.data_type),
                )


def check_shape(
    config: Dict[str, Any], tensor: Dict[str, Any], shape: Optional[Sequence[int]], is_exact: bool
) -> None:
    """Where the model says a size the config must say the same; in an input it may leave it free."""
    if shape is None:
        return
    is_batching = config["max_batch_size"] > 0
    dims = list(dims_of(tensor))
    full = [-1, *dims] if is_batching else dims
    is_same = len(shape) == len(full) and all(
        said == -1 or said == dim or (dim == -1 and not is_exact) for said, dim in zip(shape, full)
    )
    if is_same:
        return
    start = "model '%s', tensor '%s': the model expects %d dimensions (shape %s) but the model configuration " % (
        config["name"],
        tensor["name"],
        len(shape),
        shape_text(shape),
    )
    if is_batching:
        end = (
            "specifies %d dimensions (an initial batch dimension because max_batch_size > 0 followed by the "
            "explicit tensor shape, making complete shape %s)"
        )
    else:
        end = "specifies %d dimensions (shape %s)"
    raise StatusError("INVALID_ARG", start + end % (len(full), shape_text(full)))


def shape_text(shape: Sequence[int]) -> str:
    return "[%s]" % ",".join(str(dim) for dim in shape)

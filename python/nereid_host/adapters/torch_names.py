"""Which argument and which result of a PyTorch model a name in the config means. Called by torch_files.py and
pytorch_model.py; pure, knows nothing of torch.

  x, weights                  arguments of forward(), where all inputs are such
  INPUT__0, OUTPUT__1         the number behind "__", where all inputs, or all outputs, have one
  ARGS[0], KWARGS[k][0]       the place in what an exported program takes; RESULT[0], RESULT[k] in what it returns
  otherwise                   the order of the config
"""
from typing import Any, Dict, List, Optional, Sequence, Tuple

from nereid_host.status import StatusError

_BAD_OUTPUT = (
    "output must be of type Tensor, List[str] or Tuple containing one of these two types. It should not be a "
    "Scalar, found %s"
)


def positions_of(names: Sequence[str], arguments: Sequence[str] = ()) -> List[int]:
    """One position for each name; `arguments` are the names that the model itself has."""
    if arguments and all(name in arguments for name in names):
        return [list(arguments).index(name) for name in names]
    numbers = [_number_in(name) for name in names]
    if any(number is None for number in numbers):
        return list(range(len(names)))
    return [number for number in numbers if number is not None]


def _number_in(name: str) -> Optional[int]:
    _, delimiter, number = name.partition("__")
    return int(number) if delimiter and number.isdigit() else None


def leaves_of(value: Any, path: str) -> List[Tuple[str, Any]]:
    """What lies in nested tuples, lists and dicts, in order, with its path. A list of texts is one leaf."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, (tuple, list)) and not _is_texts(value):
        pairs = list(enumerate(value))
    else:
        return [(path, value)]
    return [leaf for key, item in pairs for leaf in leaves_of(item, "%s[%s]" % (path, key))]


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(item, (str, bytes)) for item in value)


def pick_outputs(result: Any, names: Sequence[str]) -> Dict[str, Any]:
    """What a model returned, under the names of the config."""
    if isinstance(result, dict) and all(name in result for name in names):
        return {name: result[name] for name in names}
    leaves = leaves_of(result, "RESULT")
    by_path = dict(leaves)
    if all(name in by_path for name in names):
        return {name: by_path[name] for name in names}
    picked: Dict[str, Any] = {}
    for name, position in zip(names, positions_of(names)):
        if position >= len(leaves):
            raise StatusError(
                "INVALID_ARG",
                "The output %s in the model configuration refers to an output index which doesn't exist. This "
                "model has %d outputs" % (name, len(leaves)),
            )
        picked[name] = leaves[position][1]
    return picked


def bad_output(value: Any) -> TypeError:
    return TypeError(_BAD_OUTPUT % type(value).__name__)

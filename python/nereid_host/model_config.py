"""ModelConfig: what `auto_complete_config` may add to a config, with Triton's rules and words."""
import json
from typing import Any, Dict, List, Optional

# What a tensor or a scheduler that the model added has beside what it said; as a parsed config.pbtxt has it.
_INPUT_DEFAULTS: Dict[str, Any] = {
    "format": "FORMAT_NONE",
    "is_shape_tensor": False,
    "allow_ragged_batch": False,
    "optional": False,
    "is_non_linear_format_io": False,
}
_OUTPUT_DEFAULTS: Dict[str, Any] = {
    "label_filename": "",
    "is_shape_tensor": False,
    "is_non_linear_format_io": False,
}
_DYNAMIC_BATCHING_DEFAULTS: Dict[str, Any] = {
    "preferred_batch_size": [],
    "max_queue_delay_microseconds": 0,
    "preserve_ordering": False,
    "priority_levels": 0,
    "default_priority_level": 0,
    "priority_queue_policy": {},
}


class ModelConfig:
    def __init__(self, model_config: str) -> None:
        self._model_config: Dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> Dict[str, Any]:
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        given = self._model_config["max_batch_size"]
        if given > max_batch_size:
            raise ValueError(
                "configuration specified max_batch_size %s, but in auto-complete-config function for model '%s' "
                "specified max_batch_size %s" % (given, self._name(), max_batch_size)
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        for choice in ("sequence_batching", "ensemble_scheduling"):
            if choice in self._model_config:
                raise ValueError(
                    "Configuration specified scheduling_choice as '%s', but auto-complete-config function for "
                    "model '%s' tries to set scheduling_choice as 'dynamic_batching'" % (choice, self._name())
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: Dict[str, Any]) -> None:
        self._check_properties("input", input, ("name", "data_type", "dims", "optional"))
        current = self._find("input", input["name"])
        if current is None:
            self._model_config["input"].append(input)
            return
        self._check_same("input", current, input)
        if "optional" in input:
            if "optional" in current and current["optional"] != input["optional"]:
                raise ValueError(
                    "model '%s', tensor '%s': the model expects optional %s but the model configuration "
                    "specifies optional %s"
                    % (self._name(), input["name"], input["optional"], current["optional"])
                )
            current["optional"] = input["optional"]
        current["data_type"] = input["data_type"]
        current["dims"] = input["dims"]

    def add_output(self, output: Dict[str, Any]) -> None:
        self._check_properties("output", output, ("name", "data_type", "dims"))
        current = self._find("output", output["name"])
        if current is None:
            self._model_config["output"].append(output)
            return
        self._check_same("output", current, output)
        current["data_type"] = output["data_type"]
        current["dims"] = output["dims"]

    def set_model_transaction_policy(self, transaction_policy_dict: Dict[str, Any]) -> None:
        for name in transaction_policy_dict:
            if name != "decoupled":
                raise ValueError(
                    "model transaction property in auto-complete-config function for model '%s' contains property "
                    "other than 'decoupled'." % self._name()
                )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", wanted) != wanted:
            raise ValueError(
                "trying to change decoupled property in auto-complete-config for model '%s', which is already set "
                "to '%s'." % (self._name(), policy["decoupled"])
            )
        policy["decoupled"] = wanted

    def _name(self) -> str:
        return self._model_config["name"]

    def _find(self, kind: str, name: str) -> Optional[Dict[str, Any]]:
        tensors: List[Dict[str, Any]] = self._model_config[kind]
        return next((tensor for tensor in tensors if tensor["name"] == name), None)

    def _check_properties(self, kind: str, tensor: Dict[str, Any], allowed: Any) -> None:
        where = "in auto-complete-config function for model '%s'" % self._name()
        if any(name not in allowed for name in tensor):
            quoted = ["'%s'" % name for name in allowed]
            listed = ", ".join(quoted[:-1]) + " and " + quoted[-1]
            raise ValueError(
                "%s '%s' %s contains property other than %s." % (kind, tensor["name"], where, listed)
            )
        if "name" not in tensor:
            raise ValueError("%s %s is missing 'name' property." % (kind, where))
        for required in ("data_type", "dims"):
            if required not in tensor:
                raise ValueError("%s '%s' %s is missing '%s' property." % (kind, tensor["name"], where, required))

    def _check_same(self, kind: str, current: Dict[str, Any], tensor: Dict[str, Any]) -> None:
        if current["data_type"] not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                "unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s"
                % (self._name(), current["data_type"], kind, tensor["name"], tensor["data_type"])
            )
        if current["dims"] and current["dims"] != tensor["dims"]:
            raise ValueError(
                "model '%s', tensor '%s': the model expects dims %s but the model configuration specifies dims %s"
                % (self._name(), tensor["name"], tensor["dims"], current["dims"])
            )


def complete_defaults(config: Dict[str, Any]) -> Dict[str, Any]:
    """The config with every field that the server expects in what a model added."""
    completed = dict(config)
    completed["input"] = [{**_INPUT_DEFAULTS, **_plain(tensor)} for tensor in config["input"]]
    completed["output"] = [{**_OUTPUT_DEFAULTS, **_plain(tensor)} for tensor in config["output"]]
    if "dynamic_batching" in config:
        completed["dynamic_batching"] = {**_DYNAMIC_BATCHING_DEFAULTS, **config["dynamic_batching"]}
    policy = config.get("model_transaction_policy")
    if policy is not None:
        completed["model_transaction_policy"] = {"decoupled": bool(policy.get("decoupled", False))}
    return completed


def _plain(tensor: Dict[str, Any]) -> Dict[str, Any]:
    """Models write dims as tuples and with numpy integers as well."""
    return {**tensor, "dims": [int(dim) for dim in tensor["dims"]]}

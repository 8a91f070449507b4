"""The `parameters` of a model config as the adapters read them, with Triton's errors for values that do not fit."""
from typing import Any, Dict, Optional

from nereid_host.status import StatusError

_TRUE = ("true", "on", "1", "yes")
_FALSE = ("false", "off", "0", "no")


class Parameters:
    def __init__(self, parameters: Dict[str, Any]) -> None:
        self._parameters = parameters

    def text(self, name: str, default: str = "") -> str:
        return self._parameters.get(name, {}).get("string_value", default)

    def flag(self, name: str) -> Optional[bool]:
        """None when the config does not set it."""
        if name not in self._parameters:
            return None
        value = self.text(name)
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise StatusError("INVALID_ARG", "failed to convert %s '%s' to boolean value" % (name, value))

    def count(self, name: str) -> Optional[int]:
        """A number that is not negative; None when the config does not set it."""
        if name not in self._parameters:
            return None
        value = self.text(name)
        if not value.isdigit():
            raise StatusError(
                "INVALID_ARG", "expected the parameter '%s' to be a non-negative number, got %s" % (name, value)
            )
        return int(value)

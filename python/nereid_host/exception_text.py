"""The text of an exception as clients and operators of Triton know it (pybind11's):

  ValueError: the message

  At:
    /models/m/1/model.py(14): helper
    /models/m/1/model.py(40): execute
"""
import importlib
import os
from typing import List

from nereid_host.status import StatusError

# The host itself, how it waits for coroutines, and the import system, part of which is frozen into the interpreter.
_HIDDEN = (
    os.path.dirname(__file__) + os.sep,
    os.path.join(os.path.dirname(os.__file__), "concurrent", "futures") + os.sep,
    os.path.dirname(importlib.__file__) + os.sep,
    "<frozen ",
)


def text_of(error: BaseException) -> str:
    if isinstance(error, StatusError):
        return error.message
    message = str(error) or "<EMPTY MESSAGE>"
    text = "%s: %s" % (type(error).__name__, message)
    places = _places_of(error)
    return text if not places else "%s\n\nAt:\n%s" % (text, "".join(places))


def _places_of(error: BaseException) -> List[str]:
    """The innermost first."""
    places: List[str] = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_HIDDEN):
            places.append("  %s(%d): %s\n" % (code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return places[::-1]

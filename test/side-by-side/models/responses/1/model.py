"""What execute may return, and what it may not."""
import json

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, raised, seen, step_of

CODES = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"]


def number(name, value):
    return pb_utils.Tensor(name, np.array([value], np.int32))


class TritonPythonModel(StepModel):
    def execute(self, requests):
        """A method whose name begins with `returns_` gives the whole list."""
        step = step_of(requests[0])
        if step.startswith("returns_"):
            return getattr(self, step)()
        return super().execute(requests)

    def all_outputs(self, _):
        return pb_utils.InferenceResponse([number("B", 2), number("A", 1)])

    def one_output(self, _):
        return pb_utils.InferenceResponse([number("B", 2)])

    def no_outputs(self, _):
        return pb_utils.InferenceResponse(output_tensors=[])

    def extra_output(self, _):
        return pb_utils.InferenceResponse([number("A", 1), number("OTHER", 3)])

    def same_output_twice(self, _):
        return pb_utils.InferenceResponse([number("A", 1), number("A", 2)])

    def error(self, _):
        return pb_utils.InferenceResponse([], pb_utils.TritonError("an error: é"))

    def error_and_outputs(self, _):
        return pb_utils.InferenceResponse([number("A", 1)], error=pb_utils.TritonError("with outputs"))

    def empty_error(self, _):
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(""))

    def parameters(self, _):
        values = {"text": "é", "yes": True, "no": False, "int": -3, "big": 2**62}
        return pb_utils.InferenceResponse([number("A", 1)], parameters=values)

    def no_parameters(self, _):
        return pb_utils.InferenceResponse([number("A", 1)], parameters={})

    def says(self, _):
        plain = pb_utils.InferenceResponse([number("A", 1)])
        failed = pb_utils.InferenceResponse([], pb_utils.TritonError("text", pb_utils.TritonError.NOT_FOUND))
        found = pb_utils.get_output_tensor_by_name(plain, "A")
        return {
            "has_error": [plain.has_error(), failed.has_error()],
            "error": [str(plain.error()), failed.error().message()],
            "code": [str(failed.error().code()), repr(failed.error().code()), int(failed.error().code())],
            "default_code": str(pb_utils.TritonError("x").code()),
            "is_same_code": failed.error().code() == pb_utils.TritonError.NOT_FOUND,
            "outputs": [tensor.name() for tensor in plain.output_tensors()],
            "found": found.name(),
            "absent": pb_utils.get_output_tensor_by_name(plain, "B"),
            "codes": [int(getattr(pb_utils.TritonError, code)) for code in CODES],
        }

    def parameters_text(self, _):
        with_some = pb_utils.InferenceResponse([], parameters={"b": 1, "a": "é"})
        return [json.loads(with_some.parameters()), pb_utils.InferenceResponse([]).parameters()]

    def refused(self, _):
        make = pb_utils.InferenceResponse
        error = pb_utils.TritonError
        return [
            raised(make, [None]),
            raised(make, [1]),
            raised(make, 1),
            raised(make, [], "text"),
            raised(error, 1),
            raised(error, "text", 1),
            raised(error, "text", "INTERNAL"),
        ]

    def refused_parameters(self, _):
        make = pb_utils.InferenceResponse
        wrong = [{"a": 1.5}, {"a": None}, {"a": [1]}, {1: "a"}, [1], "text", {"a": 2**70}]
        return [str(raised(lambda value=value: bool(make([], parameters=value)))) for value in wrong]

    def raises(self, _):
        raise ValueError("é went wrong")

    def raises_deeper(self, _):
        return json.loads("no json")

    def raises_without_text(self, _):
        raise ValueError

    def raises_model_exception(self, _):
        raise pb_utils.TritonModelException("of the model")

    def raises_chained(self, _):
        try:
            {}["absent"]
        except KeyError as error:
            raise RuntimeError("second") from error

    def raises_own_class(self, _):
        class Own(Exception):
            def __str__(self):
                return "own text"

        raise Own(1, 2)

    def raises_many_lines(self, _):
        raise ValueError("one\ntwo\n")

    def returns_nothing(self):
        return None

    def returns_text(self):
        return "text"

    def returns_tuple(self):
        return (seen(1),)

    def returns_response(self):
        return seen(1)

    def returns_empty_list(self):
        return []

    def returns_two(self):
        return [seen(1), seen(2)]

    def returns_number_in_list(self):
        return [1]

    def returns_none_in_list(self):
        return [None]

    def returns_tensor_in_list(self):
        return [number("A", 1)]

    def returns_generator(self):
        return (seen(1) for _ in range(1))


def _error_step(code):
    def step(self, _):
        return pb_utils.InferenceResponse([], pb_utils.TritonError("code %s" % code, getattr(pb_utils.TritonError, code)))

    return step


for _code in CODES:
    setattr(TritonPythonModel, "error_" + _code.lower(), _error_step(_code))

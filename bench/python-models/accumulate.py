"""Served by both sides of the bench as it is: a sum for each sequence, the smallest stateful model there is."""
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            value = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy()
            is_start = pb_utils.get_input_tensor_by_name(request, "START").as_numpy().reshape(-1)[0]
            is_end = pb_utils.get_input_tensor_by_name(request, "END").as_numpy().reshape(-1)[0]
            sequence = pb_utils.get_input_tensor_by_name(request, "CORRID").as_numpy().reshape(-1)[0]
            total = value if is_start else self.sums.get(sequence, 0) + value
            if is_end:
                self.sums.pop(sequence, None)
            else:
                self.sums[sequence] = total
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", total)]))
        return responses

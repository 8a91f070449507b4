"""initialize raises the exception that Triton offers for it."""
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        raise pb_utils.TritonModelException("cannot begin")

    def execute(self, requests):
        pass

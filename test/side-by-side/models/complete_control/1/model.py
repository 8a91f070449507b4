"""Uses in auto_complete_config what is for execute alone."""
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        pb_utils.load_model("absent")
        return config

    def execute(self, requests):
        pass

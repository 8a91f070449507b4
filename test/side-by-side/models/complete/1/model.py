"""A config with nothing in it but the backend: everything is completed."""
import triton_python_backend_utils as pb_utils
from steps import seen


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        config = auto_complete_model_config.as_dict()
        auto_complete_model_config.set_max_batch_size(4)
        auto_complete_model_config.set_dynamic_batching()
        auto_complete_model_config.set_model_transaction_policy({"decoupled": False})
        auto_complete_model_config.add_input({"name": "STEP", "data_type": "TYPE_STRING", "dims": [1]})
        auto_complete_model_config.add_input(
            {"name": "EXTRA", "data_type": "TYPE_FP32", "dims": [-1, 2], "optional": True}
        )
        auto_complete_model_config.add_output({"name": "SEEN", "data_type": "TYPE_STRING", "dims": [1]})
        assert config is auto_complete_model_config.as_dict()
        return auto_complete_model_config

    def execute(self, requests):
        return [seen(len(pb_utils.get_input_tensor_by_name(request, "STEP").as_numpy())) for request in requests]

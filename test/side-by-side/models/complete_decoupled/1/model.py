"""Completes the half of an input, and makes the model decoupled."""
from steps import FINAL, seen


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "STEP", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "SEEN", "data_type": "TYPE_STRING", "dims": [1]})
        config.set_model_transaction_policy({"decoupled": True})
        return config

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(seen(1))
            sender.send(seen(2), FINAL)

"""initialize raises."""
import json


class TritonPythonModel:
    def initialize(self, args):
        json.loads("no json: é")

    def execute(self, requests):
        pass

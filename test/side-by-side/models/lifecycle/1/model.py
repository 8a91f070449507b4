"""What initialize is given, and in which order the functions of a model are called."""
import json
import os

import triton_python_backend_utils as pb_utils
from steps import StepModel

NOTES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "notes.txt")


def note(text):
    with open(NOTES, "a") as file:
        file.write(text + "\n")


class TritonPythonModel(StepModel):
    def __init__(self):
        note("constructed")

    def initialize(self, args):
        note("initialize")
        self.args = args

    def finalize(self):
        note("finalize")

    def arguments(self, _):
        args = {name: value for name, value in self.args.items() if name not in ("model_config", "model_repository")}
        return {
            "args": args,
            "types": sorted({type(value).__name__ for value in self.args.values()}),
            "type": type(self.args).__name__,
            "repository": os.path.basename(self.args["model_repository"]),
            "is_model_dir": pb_utils.get_model_dir() == os.path.join(self.args["model_repository"], "1"),
            "module": __name__,
            "file": os.path.basename(__file__),
            "config": json.loads(self.args["model_config"]),
        }

    def notes(self, _):
        with open(NOTES) as file:
            return file.read().split()

"""Imports what does not exist."""
import absent_module


class TritonPythonModel:
    def execute(self, requests):
        return absent_module

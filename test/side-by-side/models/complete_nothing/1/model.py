"""Returns nothing."""


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        pass

    def execute(self, requests):
        pass

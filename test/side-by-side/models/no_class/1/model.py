"""Has no TritonPythonModel."""


class AnotherName:
    def execute(self, requests):
        pass

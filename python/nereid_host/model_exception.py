"""The exception of the Python backend: raised by its API, and by models that want to."""


class TritonModelException(Exception):
    pass

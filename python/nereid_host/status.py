"""Status codes as Triton has them, and the error that carries one to the server with words for the user."""

# The index of a code is its number on the wire and in TritonError.
STATUS_CODES = (
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
)

UNKNOWN = STATUS_CODES.index("UNKNOWN")
INTERNAL = STATUS_CODES.index("INTERNAL")
INVALID_ARG = STATUS_CODES.index("INVALID_ARG")
CANCELLED = STATUS_CODES.index("CANCELLED")


class StatusError(Exception):
    """What the user reads as it is, without the name of an exception and without a traceback."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

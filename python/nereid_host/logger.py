"""Logger: what a model says goes to the server's log, with the file and line that said it."""
import enum
import os
import sys

from nereid_host.runtime import runtime


class LogLevel(enum.IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: LogLevel = LogLevel.INFO) -> None:
        if not isinstance(message, str) or not isinstance(level, LogLevel):
            raise TypeError("log() takes a text and a level, got %r and %r" % (type(message), type(level)))
        _log(level, message)

    @staticmethod
    def log_info(message: str) -> None:
        _log(LogLevel.INFO, message)

    @staticmethod
    def log_warn(message: str) -> None:
        _log(LogLevel.WARNING, message)

    @staticmethod
    def log_error(message: str) -> None:
        _log(LogLevel.ERROR, message)

    @staticmethod
    def log_verbose(message: str) -> None:
        _log(LogLevel.VERBOSE, message)


def _log(level: LogLevel, message: str) -> None:
    """Called by the functions above alone: the model's code is two frames up."""
    if not isinstance(message, str):
        raise TypeError("a log message must be a text, found %r" % type(message))
    frame = sys._getframe(2)
    file_name = os.path.basename(frame.f_code.co_filename)
    runtime.log(level.name.lower(), "%s:%d] %s" % (file_name, frame.f_lineno, message))

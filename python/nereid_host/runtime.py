"""What the API that models import needs of the host around it. The host fills it before the model is loaded;
outside of a host, in a model's own tests, messages go to standard error."""
import sys


def _print_log(level: str, message: str) -> None:
    print("%s: %s" % (level, message), file=sys.stderr)


class Runtime:
    def __init__(self) -> None:
        # (level, message); level is error, warning, info or verbose.
        self.log = _print_log
        # Directory of the model's version.
        self.model_directory = ""


runtime = Runtime()

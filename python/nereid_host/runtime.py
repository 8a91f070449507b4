"""What the API that models import needs of the host around it. The host fills it before the model is loaded;
outside of a host, in a model's own tests, messages go to standard error and nothing can be asked of a server."""
import sys
from typing import Any, Callable


def _print_log(level: str, message: str) -> None:
    print("%s: %s" % (level, message), file=sys.stderr)


def _drop_job(job: Callable[[], None]) -> None:
    """Without a server there is nothing to tell it."""


# What the model's code may do depends on the function it is in.
LOADING = "loading"
INITIALIZING = "initializing"
RUNNING = "running"
FINALIZING = "finalizing"


class Runtime:
    def __init__(self) -> None:
        # (level, message); level is error, warning, info or verbose.
        self.log = _print_log
        # Directory of the model's version.
        self.model_directory = ""
        # The name of the instance, which is what Triton's texts say.
        self.instance_name = ""
        self.phase = LOADING
        # nereid_host.calls.Calls: what may be asked of the server.
        self.calls: Any = None
        # Has something short done soon, on a thread of the host; safe in destructors.
        self.later: Callable[[Callable[[], None]], None] = _drop_job


runtime = Runtime()

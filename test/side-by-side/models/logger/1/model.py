"""What a model says in the server's log."""
import triton_python_backend_utils as pb_utils
from steps import StepModel, raised


class TritonPythonModel(StepModel):
    def initialize(self, args):
        pb_utils.Logger.log_info("side-by-side: in initialize")

    def says(self, _):
        log = pb_utils.Logger
        log.log_info("side-by-side: info é")
        log.log_warn("side-by-side: warn")
        log.log_error("side-by-side: error")
        log.log_verbose("side-by-side: verbose")
        log.log("side-by-side: plain")
        log.log("side-by-side: level warning", log.WARNING)
        log.log("side-by-side: level error", log.ERROR)
        log.log("side-by-side: level info", log.LogLevel.INFO)
        log.log("side-by-side: level verbose", log.VERBOSE)
        return [int(level) for level in (log.INFO, log.WARNING, log.ERROR, log.VERBOSE)]

    def refused(self, _):
        log = pb_utils.Logger
        return [raised(log.log, 1), raised(log.log, "text", 1), raised(log.log_info, None), raised(log.log_warn)]

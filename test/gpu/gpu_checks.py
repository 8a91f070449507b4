"""What the programs of this folder that load models on a GPU share: checks, the memory of the device, and a server of their
own in explicit mode."""
import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e", "framework_models"))
from v2_client import Client  # noqa: E402  (needs the path above)

MIB = 1024 * 1024
MAIN = os.path.join(HERE, "..", "..", "bin", "nereid.js")
ON_GPU = "instance_group [ { count: %d kind: KIND_GPU gpus: [ 0 ] } ]\n"
failures = []


def check(what, got, want):
    is_same = got == want
    reason = "" if is_same else ": %r, expected %r" % (got, want)
    print("%s %s%s" % ("ok  " if is_same else "FAIL", what, reason), flush=True)
    if not is_same:
        failures.append(what)


def used_mib():
    """By all processes, this one included."""
    free, total = torch.cuda.mem_get_info(0)
    return (total - free) // MIB


def wait_for_memory(limit_mib):
    """The host of a model that was unloaded ends a moment later."""
    end = time.time() + 20
    while used_mib() > limit_mib and time.time() < end:
        time.sleep(0.1)
    return used_mib()


def start(options, folder):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    log = tempfile.NamedTemporaryFile("w+", suffix=".log")
    flags = ["--model-repository=%s" % folder, "--model-control-mode=explicit", "--http-address=127.0.0.1"]
    flags += ["--http-port=%d" % port, "--allow-grpc=false", "--allow-metrics=false"]
    environment = {**os.environ, "NEREID_PYTHON": sys.executable}
    process = subprocess.Popen([options.node, options.main, *flags], stdout=log, stderr=log, env=environment)
    client = Client("127.0.0.1:%d" % port)
    deadline = time.time() + 30
    while True:
        try:
            client.call("/health/live")
            return client, process, log
        except OSError:
            if time.time() > deadline or process.poll() is not None:
                log.seek(0)
                sys.exit("the server does not start\n%s" % log.read())
            time.sleep(0.1)


def run(options, make, check_all):
    """Fills a repository, starts the server on it, checks, and exits; the log of the server comes last."""
    folder = tempfile.mkdtemp()
    make(folder)
    client, process, log = start(options, folder)
    try:
        check_all(client, folder)
    finally:
        process.terminate()
        print("     exit code of the server: %d" % process.wait(30))
        log.seek(0)
        print("---- log of the server\n%s" % log.read())
    print("%d failures: %s" % (len(failures), failures) if failures else "all checks passed")
    sys.exit(1 if failures else 0)


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", default="node")
    parser.add_argument("--main", default=MAIN)
    return parser.parse_args()

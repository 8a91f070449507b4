"""CUDA shared memory against a real GPU; not part of npm test.

Run it on a Linux machine with an NVIDIA GPU and the CUDA runtime library, after npm run build:
    python3 test/gpu/cuda_shared_memory.py [--node node] [--main bin/nereid.js]
It starts the server with an identity model and is itself the client that owns the device memory. Where the package
tritonclient[grpc,cuda] is installed, its calls are tried too.
"""

import argparse
import base64
import ctypes
import glob
import json
import os
import signal
import site
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

MIB = 1024 * 1024
SILENCE_SECS = 30
CONFIG = """backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_UINT8 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_UINT8 dims: [ -1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
INVALID = "failed to register shared memory region: invalid args"


class IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


def load_runtime():
    names = ["libcudart.so", "libcudart.so.13", "libcudart.so.12"]
    folders = site.getsitepackages() + [site.getusersitepackages()]
    for folder in folders:
        names += glob.glob(f"{folder}/nvidia/*/lib/libcudart.so.*")
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    sys.exit("no libcudart was found")


cudart = None


def cuda(function, *values):
    result = getattr(cudart, function)(*values)
    if result != 0:
        cudart.cudaGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"{function}: {cudart.cudaGetErrorString(result).decode()}")


class DeviceBuffer:
    def __init__(self, size):
        self.size = size
        self.pointer = ctypes.c_void_p()
        cuda("cudaMalloc", ctypes.byref(self.pointer), ctypes.c_size_t(size))

    def _at(self, offset):
        return ctypes.c_void_p(self.pointer.value + offset)

    def put(self, data, offset=0):
        cuda("cudaMemcpy", self._at(offset), data, ctypes.c_size_t(len(data)), 1)

    def get(self, offset=0, size=None):
        target = ctypes.create_string_buffer(self.size - offset if size is None else size)
        cuda("cudaMemcpy", target, self._at(offset), ctypes.c_size_t(len(target)), 2)
        return target.raw

    def handle(self):
        handle = IpcHandle()
        cuda("cudaIpcGetMemHandle", ctypes.byref(handle), self.pointer)
        return bytes(handle.reserved)

    def free(self):
        cuda("cudaFree", self.pointer)


class Server:
    def __init__(self, node, main, repository):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            second.bind(("127.0.0.1", 0))
            self.port, self.grpc_port = first.getsockname()[1], second.getsockname()[1]
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        flags = [f"--model-repository={repository}", f"--http-port={self.port}", "--http-address=127.0.0.1"]
        flags += [f"--grpc-port={self.grpc_port}", "--grpc-address=127.0.0.1"]
        flags += ["--allow-metrics=false", "--allow-client-shm=true"]
        self.process = subprocess.Popen([node, main, *flags], stdout=self.log, stderr=self.log)
        deadline = time.time() + 60
        while self.get("/v2/health/ready")[0] != 200:
            if time.time() > deadline or self.process.poll() is not None:
                sys.exit(f"the server does not start\n{self.text()}")
            time.sleep(0.1)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def get(self, path):
        return self.call("GET", path)

    def register(self, name, handle, size, device=0):
        body = {"raw_handle": {"b64": base64.b64encode(handle).decode()}, "device_id": device, "byte_size": size}
        return self.call("POST", f"/v2/cudasharedmemory/region/{name}/register", body)

    def unregister(self, name=None):
        region = "" if name is None else f"/region/{name}"
        return self.call("POST", f"/v2/cudasharedmemory{region}/unregister", {})

    def status(self):
        return json.loads(self.get("/v2/cudasharedmemory/status")[1])

    def infer(self, source, target, size):
        """source and target: (region, offset), or None for data in the body."""
        given = {"name": "INPUT0", "datatype": "UINT8", "shape": [size]}
        if source is None:
            given["data"] = [7] * size
        else:
            given["parameters"] = memory(source, size)
        wanted = {"name": "OUTPUT0"}
        if target is not None:
            wanted["parameters"] = memory(target, target[2] if len(target) > 2 else size)
        status, text = self.call("POST", "/v2/models/ident/infer", {"inputs": [given], "outputs": [wanted]})
        return status, text

    def memory_host(self):
        """The process id of the memory host, None when there is none."""
        for entry in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(entry) as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open(entry.replace("stat", "cmdline")) as file:
                    title = file.read()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid and fields[0] != "Z" and "memory-host" in title:
                return int(entry.split("/")[2])
        return None

    def text(self):
        with open(self.log.name) as file:
            return file.read()


def memory(place, size):
    return {"shared_memory_region": place[0], "shared_memory_offset": place[1], "shared_memory_byte_size": size}


failures = []


def check(what, got, expected):
    is_right = got == expected
    print(f"{'ok  ' if is_right else 'FAIL'} {what}", flush=True)
    if not is_right:
        failures.append(what)
        print(f"       got      {str(got)[:400]}\n       expected {str(expected)[:400]}", flush=True)


def error_of(answer):
    """(status, error text) of an answer."""
    status, text = answer
    return status, json.loads(text).get("error") if text.startswith("{") else text


def pattern(size, seed=1):
    return bytes((i * 31 + seed * 7 + (i >> 8)) & 0xFF for i in range(min(size, 65536))) * (size // 65536 + 1)


def check_registration(server, source, target):
    check("no memory host before the first registration", server.memory_host(), None)
    start = time.time()
    check("register", server.register("in", source.handle(), source.size), (200, ""))
    print(f"     first registration took {(time.time() - start) * 1000:.0f} ms")
    start = time.time()
    check("register another", server.register("out", target.handle(), target.size), (200, ""))
    print(f"     second registration took {(time.time() - start) * 1000:.0f} ms")
    check("one memory host", server.memory_host() is not None, True)
    rows = [{"name": "in", "device_id": 0, "byte_size": source.size}]
    rows += [{"name": "out", "device_id": 0, "byte_size": target.size}]
    check("status lists both", server.status(), rows)
    check("status of one", json.loads(server.get("/v2/cudasharedmemory/region/in/status")[1]), rows[:1])
    check("system status lists none", json.loads(server.get("/v2/systemsharedmemory/status")[1]), [])
    other = "The region named 'in' is registered as CUDA shared memory, not system shared memory"
    check("told from system", error_of(server.get("/v2/systemsharedmemory/region/in/status")), (404, other))
    taken = (400, "shared memory region 'in' already in manager")
    check("name is taken", error_of(server.register("in", source.handle(), 64)), taken)
    with open("/dev/shm/cuda-script", "wb") as file:
        file.write(bytes(4096))
    system = {"key": "/cuda-script", "offset": 0, "byte_size": 4096}
    answer = server.call("POST", "/v2/systemsharedmemory/region/in/register", system)
    check("name is taken for system memory too", error_of(answer), taken)
    check("system region beside", server.call("POST", "/v2/systemsharedmemory/region/sys/register", system), (200, ""))
    check("unregister all system", server.call("POST", "/v2/systemsharedmemory/unregister", {}), (200, ""))
    os.unlink("/dev/shm/cuda-script")
    check("CUDA regions stay", server.status(), rows)


def check_inference(server, source, target):
    data = pattern(source.size)[: source.size]
    source.put(data)
    target.put(bytes(target.size))
    status, text = server.infer(("in", 100), ("out", 4096), 1000)
    check("infer with offsets", status, 200)
    output = json.loads(text)["outputs"][0]
    check("output without data", (output.get("shape"), "data" in output), ([1000], False))
    check("bytes on the device", target.get(4096, 1000) == data[100:1100], True)
    rest = target.get(0, 4096), target.get(5096)
    check("bytes around untouched", any(rest[0]) or any(rest[1]), False)
    status, text = server.infer(("in", 5), None, 16)
    check("input on the device, output in the answer", json.loads(text)["outputs"][0].get("data"), list(data[5:21]))
    check("input in the request, output on the device", server.infer(None, ("out", 0), 8)[0], 200)
    check("bytes on the device", target.get(0, 8), bytes([7] * 8))
    size = source.size
    check("whole region", server.infer(("in", 0), ("out", 0), size)[0], 200)
    check("bytes on the device", target.get() == data, True)
    wrong = (400, "Invalid offset for shared memory region: 'in'")
    check("offset at the end", error_of(server.infer(("in", size), ("out", 0), 1)), wrong)
    wrong = (400, "Invalid offset + byte size for shared memory region: 'in'")
    check("range over the end", error_of(server.infer(("in", 1), ("out", 0), size)), wrong)
    wrong = (404, "Unable to find shared memory region: 'nobody'")
    check("unknown region", error_of(server.infer(("nobody", 0), ("out", 0), 8)), wrong)
    room = "shared memory size specified with the request for output 'OUTPUT0' (4 bytes) should be at least 8 bytes to hold the results"
    check("too little room", error_of(server.infer(("in", 0), ("out", 0, 4), 8)), (500, room))


def check_refusals(server, source):
    handle = source.handle()
    check("handle of zeros", error_of(server.register("w", bytes(64), 64)), (400, INVALID))
    check("handle of noise", error_of(server.register("w", os.urandom(64), 64)), (400, INVALID))
    short = "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"
    check("handle of 63 bytes", error_of(server.register("w", handle[:63], 64)), (400, short))
    check("no such device", error_of(server.register("w", handle, 64, device=99)), (400, INVALID))
    check("impossible device", error_of(server.register("w", handle, 64, device=2**40)), (400, INVALID))
    too_large = (400, "failed to register shared memory region 'w': invalid args")
    check("larger than the allocation", error_of(server.register("w", handle, source.size + 1)), too_large)
    check("absurdly large", error_of(server.register("w", handle, 2**63)), too_large)
    check("a part of the allocation", server.register("w", handle, 64), (200, ""))
    check("unregister it", server.unregister("w"), (200, ""))
    check("unregister what is unknown", server.unregister("nobody"), (200, ""))
    check("the others still work", server.infer(("in", 0), ("out", 0), 64)[0], 200)


def check_small_allocations(server):
    """The driver puts small allocations into one block; each must be found at its own place."""
    buffers = [DeviceBuffer(1000) for _ in range(3)]
    for number, buffer in enumerate(buffers):
        buffer.put(bytes([number + 1] * 1000))
        check(f"register small {number}", server.register(f"s{number}", buffer.handle(), 1000), (200, ""))
    for number in range(3):
        text = server.infer((f"s{number}", 990), None, 10)[1]
        check(f"bytes of small {number}", json.loads(text)["outputs"][0]["data"], [number + 1] * 10)
    answer = server.register("s", buffers[0].handle(), 1001)
    print(f"     one byte more than such an allocation is answered with {answer[0]} {answer[1]}")
    server.unregister("s")
    for number in range(3):
        server.unregister(f"s{number}")
    for buffer in buffers:
        buffer.free()


def check_steps(server):
    """Copies longer than one step, at odd places."""
    size = 20 * MIB + 5
    source, target = DeviceBuffer(24 * MIB), DeviceBuffer(24 * MIB)
    data = pattern(size, 9)[:size]
    source.put(data, 3)
    target.put(bytes(target.size))
    server.register("a", source.handle(), source.size)
    server.register("b", target.handle(), target.size)
    check("20 MiB and 5 bytes at odd offsets", server.infer(("a", 3), ("b", 1001), size)[0], 200)
    got = target.get()
    check("bytes on the device", got[1001 : 1001 + size] == data, True)
    check("bytes around untouched", any(got[:1001]) or any(got[1001 + size :]), False)
    server.unregister("a")
    server.unregister("b")
    source.free()
    target.free()


def check_many_at_once(server, source, target):
    source.put(pattern(source.size, 3)[: source.size])
    target.put(bytes(target.size))
    part = source.size // 16
    answers = []

    def work(number):
        for _ in range(5):
            answers.append(server.infer(("in", number * part), ("out", (15 - number) * part), part)[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("80 requests of 16 clients", answers, [200] * 80)
    data, got = source.get(), target.get()
    swapped = b"".join(data[(15 - i) * part : (16 - i) * part] for i in range(16))
    check("each at its place", got == swapped, True)


def check_unregister(server, source, target):
    check("unregister one", server.unregister("out"), (200, ""))
    check("status lists the other", [row["name"] for row in server.status()], ["in"])
    missing = (404, "Unable to find shared memory region: 'out'")
    check("gone for requests", error_of(server.infer(("in", 0), ("out", 0), 8)), missing)
    check("register again", server.register("out", target.handle(), target.size), (200, ""))
    check("works again", server.infer(("in", 0), ("out", 0), 8)[0], 200)
    check("unregister all", server.unregister(), (200, ""))
    check("status is empty", server.status(), [])


def text_of(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size} bytes"


def measure(server, size, count=9):
    source, target = DeviceBuffer(size), DeviceBuffer(size)
    data = pattern(size, 5)[:size]
    source.put(data)
    server.register("in", source.handle(), size)
    server.register("out", target.handle(), size)
    times = []
    for _ in range(count):
        start = time.time()
        status = server.infer(("in", 0), ("out", 0), size)[0]
        times.append((time.time() - start) * 1000)
    check(f"{text_of(size)}: bytes on the device", (status, target.get() == data), (200, True))
    print(f"     {text_of(size)} in and out: median {statistics.median(times):.2f} ms, best {min(times):.2f} ms")
    server.unregister()
    measure_system(server, size, data, count)
    source.free()
    target.free()


def measure_system(server, size, data, count):
    """The same through system shared memory, for comparison."""
    for name in ("in", "out"):
        with open(f"/dev/shm/cuda-script-{name}", "wb") as file:
            file.write(data)
        body = {"key": f"/cuda-script-{name}", "offset": 0, "byte_size": size}
        server.call("POST", f"/v2/systemsharedmemory/region/{name}/register", body)
    times = []
    for _ in range(count):
        start = time.time()
        server.infer(("in", 0), ("out", 0), size)
        times.append((time.time() - start) * 1000)
    print(f"     the same in system memory: median {statistics.median(times):.2f} ms, best {min(times):.2f} ms")
    server.call("POST", "/v2/systemsharedmemory/unregister", {})
    for name in ("in", "out"):
        os.unlink(f"/dev/shm/cuda-script-{name}")


def check_triton_client(server):
    try:
        import numpy
        import tritonclient.grpc as client
        import tritonclient.utils.cuda_shared_memory as memory_of
        from tritonclient.utils import InferenceServerException
    except ImportError as error:
        print(f"skip tritonclient: {error}")
        return
    triton = client.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
    source = memory_of.create_shared_memory_region("in", 4096, 0)
    target = memory_of.create_shared_memory_region("out", 4096, 0)
    triton.register_cuda_shared_memory("in", memory_of.get_raw_handle(source), 0, 4096)
    triton.register_cuda_shared_memory("out", memory_of.get_raw_handle(target), 0, 4096)
    rows = triton.get_cuda_shared_memory_status(as_json=True)["regions"]
    check("tritonclient: status", sorted(rows), ["in", "out"])
    values = numpy.arange(4096, dtype=numpy.uint8)
    memory_of.set_shared_memory_region(source, [values])
    memory_of.set_shared_memory_region(target, [numpy.zeros(4096, numpy.uint8)])
    given = client.InferInput("INPUT0", [4096], "UINT8")
    given.set_shared_memory("in", 4096)
    wanted = client.InferRequestedOutput("OUTPUT0")
    wanted.set_shared_memory("out", 4096)
    result = triton.infer("ident", [given], outputs=[wanted])
    got = memory_of.get_contents_as_numpy(target, numpy.uint8, [4096])
    check("tritonclient: infer", (list(result.get_output("OUTPUT0").shape), bool((got == values).all())), ([4096], True))
    given = client.InferInput("INPUT0", [96], "UINT8")
    given.set_shared_memory("in", 96, offset=1000)
    result = triton.infer("ident", [given])
    check("tritonclient: offset", bool((result.as_numpy("OUTPUT0") == values[1000:1096]).all()), True)
    try:
        triton.register_cuda_shared_memory("in", memory_of.get_raw_handle(source), 0, 4096)
        check("tritonclient: name is taken", "registered", "refused")
    except InferenceServerException as error:
        text = "shared memory region 'in' already in manager"
        check("tritonclient: name is taken", (error.status(), error.message()), ("StatusCode.ALREADY_EXISTS", text))
    triton.unregister_cuda_shared_memory("in")
    check("tritonclient: unregister", sorted(triton.get_cuda_shared_memory_status(as_json=True)["regions"]), ["out"])
    triton.unregister_cuda_shared_memory()
    check("tritonclient: unregister all", triton.get_cuda_shared_memory_status(as_json=True).get("regions", {}), {})
    memory_of.destroy_shared_memory_region(source)
    memory_of.destroy_shared_memory_region(target)
    triton.close()


def check_lost_memory(server):
    """Memory that its owner freed while it was registered is the client's mistake; the server must go on."""
    source = DeviceBuffer(2 * MIB)
    source.put(bytes([9] * 64))
    server.register("freed", source.handle(), source.size)
    source.free()
    answer = server.infer(("freed", 0), None, 4)
    print(f"     freed memory is answered with {answer[0]} {answer[1][:160]}")
    child = subprocess.Popen([sys.executable, __file__, "--own-memory"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    handle = bytes.fromhex(child.stdout.readline().decode())
    check("register memory of another process", server.register("foreign", handle, MIB), (200, ""))
    text = server.infer(("foreign", 0), None, 4)[1]
    check("bytes of another process", json.loads(text)["outputs"][0]["data"], [5] * 4)
    child.kill()
    child.wait()
    answer = server.infer(("foreign", 0), None, 4)
    print(f"     memory of a dead process is answered with {answer[0]} {answer[1][:160]}")
    server.unregister()
    check("the server goes on", server.get("/v2/health/ready")[0], 200)


def own_memory():
    buffer = DeviceBuffer(2 * MIB)
    buffer.put(bytes([5] * 64))
    print(buffer.handle().hex(), flush=True)
    sys.stdin.read()


def check_killed_host(server):
    size = 64 * MIB
    source, target = DeviceBuffer(size), DeviceBuffer(size)
    server.register("in", source.handle(), size)
    server.register("out", target.handle(), size)
    host = server.memory_host()
    os.kill(host, signal.SIGSTOP)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(error_of(server.infer(("in", 0), ("out", 0), size))))
    thread.start()
    time.sleep(0.5)
    os.kill(host, signal.SIGKILL)
    thread.join()
    lost = "CUDA shared memory region 'in': the memory host was ended by signal SIGKILL. Register it again."
    check("the request that was using it", answers, [(503, lost)])
    check("its regions are gone", server.status(), [])
    check("not there for requests", server.infer(("in", 0), ("out", 0), 8)[0], 404)
    check("the server goes on", (server.get("/v2/health/ready")[0], server.memory_host()), (200, None))
    check("register again", server.register("in", source.handle(), size), (200, ""))
    check("register again", server.register("out", target.handle(), size), (200, ""))
    check("a new memory host", server.memory_host() not in (None, host), True)
    check("infer again", server.infer(("in", 0), ("out", 0), size)[0], 200)
    os.kill(server.memory_host(), signal.SIGSTOP)
    start = time.time()
    answer = error_of(server.infer(("in", 0), ("out", 0), size))
    took = time.time() - start
    silent = f"CUDA shared memory region 'in': the memory host did not answer within {SILENCE_SECS} s (was ended by signal SIGKILL). Register it again."
    check("a memory host that hangs is ended", answer, (503, silent))
    check("within its time", SILENCE_SECS - 1 < took < SILENCE_SECS + 5, True)
    source.free()
    target.free()


def check_end(server, how):
    buffer = DeviceBuffer(2 * MIB)
    server.register("last", buffer.handle(), buffer.size)
    host = server.memory_host()
    check("a memory host runs", host is not None, True)
    server.process.send_signal(how)
    code = server.process.wait(20)
    check(f"exit code after signal {how}", code, 0 if how == signal.SIGTERM else -how)
    deadline = time.time() + 5
    while os.path.exists(f"/proc/{host}") and time.time() < deadline:
        time.sleep(0.05)
    check("the memory host has ended with the server", os.path.exists(f"/proc/{host}"), False)
    buffer.free()


def run(options):
    repository = tempfile.mkdtemp()
    os.makedirs(f"{repository}/ident/1")
    with open(f"{repository}/ident/config.pbtxt", "w") as file:
        file.write(CONFIG)
    server = Server(options.node, options.main, repository)
    try:
        source, target = DeviceBuffer(4 * MIB), DeviceBuffer(4 * MIB)
        check_registration(server, source, target)
        check_inference(server, source, target)
        check_refusals(server, source)
        check_small_allocations(server)
        check_many_at_once(server, source, target)
        check_unregister(server, source, target)
        check_steps(server)
        check_triton_client(server)
        measure(server, 1024, 200)
        measure(server, 8 * MIB)
        measure(server, 64 * MIB)
        check_lost_memory(server)
        check_killed_host(server)
        check_end(server, signal.SIGTERM)
        print("---- log of the server\n" + "\n".join(line for line in server.text().split("\n") if "memory_host" in line))
        server = Server(options.node, options.main, repository)
        check_end(server, signal.SIGKILL)
    finally:
        server.process.kill()
    print(f"{len(failures)} failures: {failures}" if failures else "all checks passed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", default="node")
    parser.add_argument("--main", default=os.path.join(os.path.dirname(__file__), "..", "..", "bin", "nereid.js"))
    parser.add_argument("--own-memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cudart = load_runtime()
    if arguments.own_memory:
        own_memory()
    else:
        run(arguments)

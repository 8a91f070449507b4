"""PyTorch models on a real GPU; not part of npm test.

Run it on a machine with an NVIDIA GPU, with an interpreter that has torch and numpy, after npm run build:
    python3 test/gpu/torch_gpu.py [--node node] [--main bin/nereid.js]
It starts the server in explicit mode, loads models with KIND_GPU, compares their answers with torch called here on
the same GPU, and looks at the memory of the device before, during and after.
"""
import inspect
import os

import numpy as np
import torch
from gpu_checks import ON_GPU, check, parse_options, run, used_mib, wait_for_memory
from v2_client import Failed, at_once, tensors_text, version_of  # gpu_checks knows where it is

WIDTH = 8192


class Wide(torch.nn.Module):
    """1 GiB of weights, so that its memory is seen."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)))

    def forward(self, x):
        return torch.relu(self.layers(x))


class Sine(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x) * 2 + 1


def make(folder):
    torch.manual_seed(1)
    row = tensors_text("input", ("x", "FP32", [WIDTH])) + tensors_text("output", ("y", "FP32", [WIDTH]))
    batching = "max_batch_size: 16\ndynamic_batching { max_queue_delay_microseconds: 100000 }\n"
    module = Wide().eval()
    for name, count in (("wide", 1), ("wide_twice", 2)):
        config = 'backend: "pytorch"\n' + batching + row + ON_GPU % count
        torch.jit.script(module).save(os.path.join(version_of(folder, name, config), "model.pt"))
    half = row.replace("FP32", "BF16")
    path = version_of(folder, "halves", 'backend: "pytorch"\nmax_batch_size: 16\n' + half + ON_GPU % 1)
    torch.jit.script(Wide().eval().to(torch.bfloat16)).save(os.path.join(path, "model.pt"))
    # Exported on the CPU: the weights and the constants in the graph have to move.
    batch = torch.export.Dim("batch", min=1, max=16)
    program = torch.export.export(module, (torch.ones(2, WIDTH),), dynamic_shapes={"x": {0: batch}})
    path = version_of(folder, "program", 'platform: "torch_aoti"\nmax_batch_size: 16\n' + row + ON_GPU % 1)
    torch.export.save(program, os.path.join(path, "model.pt2"))
    make_class(folder)


def make_class(folder):
    """What torch.compile compiles in the host."""
    row = tensors_text("input", ("x", "FP32", [4])) + tensors_text("output", ("y", "FP32", [4]))
    runtime = 'backend: "pytorch"\nruntime: "model.py"\nmax_batch_size: 4\n'
    path = version_of(folder, "class", runtime + row + ON_GPU % 1)
    with open(os.path.join(path, "model.py"), "w", encoding="utf-8") as file:
        file.write("import torch\n\n\n" + inspect.getsource(Sine))


def direct(folder, x, name="wide"):
    """What torch answers; its memory is given back."""
    module = torch.jit.load(os.path.join(folder, name, "1", "model.pt"), map_location="cuda:0")
    with torch.no_grad():
        answer = module(x.cuda()).cpu()
    del module
    torch.cuda.empty_cache()
    return answer


def check_answers(client, folder):
    x = torch.rand(5, WIDTH)
    got = client.infer("wide", {"x": x.numpy()})["y"]
    want = direct(folder, x).numpy()
    print("     largest difference to torch called directly: %g of %g" % (np.abs(got - want).max(), np.abs(want).max()))
    check("answers as torch on the same GPU", bool(np.array_equal(got, want)), True)
    rows = [torch.rand(1, WIDTH) for _ in range(6)]
    before = client.statistics("wide")["execution_count"]
    answers = at_once([lambda row=row: client.infer("wide", {"x": row.numpy()})["y"] for row in rows])
    runs = client.statistics("wide")["execution_count"] - before
    wanted = direct(folder, torch.cat(rows)).numpy()
    is_close = all(np.allclose(answer[0], want, rtol=1e-4, atol=1e-5) for answer, want in zip(answers, wanted))
    check("6 requests at once", is_close, True)
    check("in fewer than 6 executions", runs < 6, True)
    print("     %d executions" % runs)


def check_other_forms(client, folder):
    x = torch.rand(3, WIDTH)
    client.load("program")
    got = client.infer("program", {"x": x.numpy()})["y"]
    is_close = np.allclose(got, direct(folder, x).numpy(), rtol=1e-4, atol=1e-5)
    check("a program exported on the CPU", bool(is_close), True)
    client.unload("program")
    client.load("halves")
    half = x.to(torch.bfloat16)
    bits = half.view(torch.int16).numpy().view(np.uint16)
    got = client.infer("halves", {"x": ("BF16", bits)})["y"]
    want = direct(folder, half, "halves").view(torch.int16).numpy().view(np.uint16)
    check("BF16", bool(np.array_equal(got, want)), True)
    client.unload("halves")
    values = torch.rand(1, 4)
    want = Sine()(values.cuda()).cpu().numpy()
    client.load("class")
    got = client.infer("class", {"x": values.numpy()})["y"]
    check("a class, compiled", bool(np.allclose(got, want, atol=1e-6)), True)
    client.unload("class")


def check_memory(client, folder):
    print("torch %s, %s" % (torch.__version__, torch.cuda.get_device_name(0)))
    direct(folder, torch.rand(1, WIDTH))
    before = used_mib()
    client.load("wide")
    loaded = used_mib()
    check_answers(client, folder)
    after = used_mib()
    client.unload("wide")
    unloaded = wait_for_memory(before + 64)
    text = "     MiB in use: %d before the load, %d after, %d after inference, %d after the unload"
    print(text % (before, loaded, after, unloaded))
    check("the load takes the weights", loaded - before > 1000, True)
    check("the unload gives all back", unloaded - before < 64, True)
    check_other_forms(client, folder)
    check("the others gave all back too", wait_for_memory(before + 64) - before < 64, True)
    client.load("wide_twice")
    check("two instances take them twice", used_mib() - before > 2000, True)
    client.unload("wide_twice")
    try:
        client.infer("wide", {"x": np.zeros((1, WIDTH), np.float32)})
        check("an unloaded model", "answers", "refuses")
    except Failed as error:
        check("an unloaded model refuses", error.status, 404)


if __name__ == "__main__":
    run(parse_options(), make, check_memory)

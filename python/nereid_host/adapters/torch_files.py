"""Opens the files of PyTorch models: TorchScript, exported programs (torch.export), packages of AOT Inductor, and
classes in Python. Called by pytorch_model.py. Each function returns a callable that takes the tensors by the names
of the config and returns what the model returns.
"""
import importlib.util
import json
import os
import shutil
import warnings
import zipfile
from typing import Any, Callable, Dict, List

import torch

from nereid_host.adapters.signature import input_count_error
from nereid_host.adapters.torch_names import leaves_of, positions_of
from nereid_host.exception_text import text_of
from nereid_host.runtime import runtime
from nereid_host.status import StatusError

Call = Callable[[Dict[str, Any]], Any]


def open_script(path: str, config: Dict[str, Any], device: Any) -> Call:
    """`device` None: the model keeps the devices that it was saved with."""
    with warnings.catch_warnings():
        # That TorchScript is old is no news for those who serve it.
        warnings.simplefilter("ignore", FutureWarning)
        module = torch.jit.load(path, map_location=device)
    module.eval()
    arguments = module.forward.schema.arguments[1:]
    kinds = [argument.type.kind() for argument in arguments]
    if "DictType" in kinds:
        if len(kinds) > 1:
            raise StatusError(
                "INTERNAL",
                "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is "
                "supported.",
            )
        return module
    names = [tensor["name"] for tensor in config["input"]]
    if len(names) != len(arguments) and "sequence_batching" not in config:
        raise input_count_error(config, len(arguments))
    return _by_position(module, positions_of(names, [argument.name for argument in arguments]), names)


def open_package(path: str, config: Dict[str, Any], device: Any) -> Call:
    """A .pt2 file: code that AOT Inductor compiled, or a program."""
    with zipfile.ZipFile(path) as archive:
        is_compiled = any("/aotinductor/" in name for name in archive.namelist())
    names = [tensor["name"] for tensor in config["input"]]
    if is_compiled:
        # The first GPU unless told; older versions cannot be told.
        options = {"device_index": device.index} if device is not None and device.index else {}
        compiled = torch._inductor.aoti_load_package(path, **options)
        spec = torch.utils._pytree.treespec_loads(compiled.loader.get_call_spec()[0])
        return _by_place(compiled, spec, names, [], config)
    program = torch.export.load(path)
    if device is not None:
        program = _move(program, device)
    arguments = list(program.graph_signature.user_inputs)
    return _by_place(program.module(), program.call_spec.in_spec, names, arguments, config)


def _move(program: Any, device: Any) -> Any:
    """Beside the weights the graph itself names devices; older versions of torch cannot change those."""
    try:
        from torch.export.passes import move_to_device_pass
    except ImportError:
        return program
    return move_to_device_pass(program, device)


def open_class(version_directory: str, config: Dict[str, Any], device: Any) -> Call:
    """`runtime: "model.py"`: a torch.nn.Module in a Python file, with its weights beside it or not."""
    path = _class_file(version_directory, config)
    if not path.endswith(".py"):
        return open_script(path, config, device)
    try:
        module = _find_class(path)()
        weights = path[: -len(".py")] + ".pt"
        if os.path.exists(weights):
            module.load_state_dict(torch.load(weights, map_location=device))
        module.to(device)
        module.eval()
    except StatusError:
        raise
    except Exception as error:
        # The user's own code: the places in it are worth reading.
        raise StatusError("INTERNAL", text_of(error)) from error
    names = [tensor["name"] for tensor in config["input"]]
    return _by_position(_compile(module, config), list(range(len(names))), names)


def _class_file(version_directory: str, config: Dict[str, Any]) -> str:
    given = config.get("default_model_filename", "")
    filenames = ["model.py", given, "model.pt"]
    # Where the config names no file, the server has filled in model.pt, which here are the weights.
    if given not in ("", "model.pt"):
        filenames.insert(0, given)
    for filename in filenames:
        path = os.path.join(version_directory, filename)
        if os.path.isfile(path):
            return path
    raise StatusError("INTERNAL", "No model found in %s/%s" % (version_directory, ["model.py", "model.pt"]))


def _find_class(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("model", path)
    if spec is None or spec.loader is None:
        raise StatusError("INTERNAL", "No model found in %s" % path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    classes = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, torch.nn.Module)
    ]
    # Its own before what it imported.
    classes.sort(key=lambda item: item.__module__ != module.__name__)
    if not classes:
        raise StatusError("INTERNAL", "Cannot find a subclass of torch.nn.Module")
    return classes[0]


def _compile(module: Any, config: Dict[str, Any]) -> Any:
    parameter = (config.get("parameters") or {}).get("TORCH_COMPILE_OPTIONAL_PARAMETERS", {})
    options = json.loads(parameter.get("string_value") or "{}")
    if "model" in options:
        raise StatusError("INTERNAL", "'model' is not an optional parameter for 'torch.compile'")
    if options.get("disable"):
        return module
    # torch.compile writes C++ and needs a compiler at the first request; without one the model runs as it is.
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++")):
        runtime.log("warning", "no C++ compiler was found, so the model runs without torch.compile")
        return module
    return torch.compile(module, **options)


def _by_position(model: Any, positions: List[int], names: List[str]) -> Call:
    if sorted(positions) != list(range(len(positions))):
        raise StatusError(
            "INVALID_ARG", "the inputs %s do not number the arguments from 0 on" % ", ".join(names)
        )
    ordered = [name for _, name in sorted(zip(positions, names))]
    return lambda tensors: model(*(tensors[name] for name in ordered))


def _by_place(model: Any, spec: Any, names: List[str], arguments: List[str], config: Dict[str, Any]) -> Call:
    """For what takes a tree of tensors: `spec` is torch's own description of it."""
    unflatten = torch.utils._pytree.tree_unflatten
    args, kwargs = unflatten(list(range(spec.num_leaves)), spec)
    places = [*leaves_of(tuple(args), "ARGS"), *leaves_of(dict(kwargs), "KWARGS")]
    if len(places) != len(names):
        raise input_count_error(config, len(places))
    by_path = dict(places)
    if all(name in by_path for name in names):
        positions = [by_path[name] for name in names]
    else:
        positions = positions_of(names, arguments)
    if sorted(positions) != list(range(len(names))):
        raise StatusError("INVALID_ARG", "the inputs %s do not name all arguments" % ", ".join(names))

    def call(tensors: Dict[str, Any]) -> Any:
        flat: List[Any] = [None] * len(names)
        for name, position in zip(names, positions):
            flat[position] = tensors[name]
        positional, keywords = unflatten(flat, spec)
        return model(*positional, **keywords)

    return call

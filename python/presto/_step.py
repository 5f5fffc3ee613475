# SPDX-License-Identifier: Apache-2.0
"""Python functions as steps."""
from __future__ import annotations

import ast
import atexit
import dis
import hashlib
import inspect
import math
import os
import pathlib
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from ._errors import ArgumentError, Error, StorageError, on_make
from ._options import names_of
from ._worker import TRACES

_TAKES = ("array", "bytes", "str")
_SCRIPT = """\
# Made by presto.step() for the processes of `step: command`. Its name says what it holds.
from __future__ import annotations

import sys

sys.path[:0] = {paths!r}
from presto._worker import serve

{code}

serve({name}, takes={takes!r}, features={features!r}, sets={sets!r}, draws={draws!r})
"""


class StepError(ArgumentError):
    """This function cannot be a step in another process; the message says why, and what can."""


# ---- where pipelines and scripts are kept ----


def _folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(base) / "presto" / "steps"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise StepError(f"{folder}: others may write there; programs are started from it")
    return folder


def keep(stem: str, suffix: str, text: str) -> str:
    """A file with this content, whose name depends on it."""
    content = text.encode("utf-8", "surrogateescape")
    path = _folder() / f"{stem}-{hashlib.sha256(content).hexdigest()[:20]}{suffix}"
    try:
        if path.read_bytes() == content:
            return str(path)
    except OSError:
        pass
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(name, path)
    return str(path)


# ---- what functions raise ----

_traces: str | None = None


def _expect_traces() -> None:
    """Tracebacks of steps are kept in a folder until somebody hears of the failure."""
    global _traces
    if _traces is None:
        _traces = tempfile.mkdtemp(prefix="presto-traces-")
        atexit.register(shutil.rmtree, _traces, True)
        on_make.append(_add_trace)
    os.environ[TRACES] = _traces


def forget_traces() -> None:
    """Those of failures that nobody heard of belong to no later one."""
    for path in pathlib.Path(_traces).glob("*") if _traces is not None else ():
        path.unlink(missing_ok=True)


def _add_trace(error: Error) -> None:
    if _traces is None or not isinstance(error, StorageError) or "command: " not in error.message:
        return
    found = sorted(pathlib.Path(_traces).glob("*"))
    for path in found[:1]:  # the first one that failed
        error.add_note(f"In the process of the step:\n{path.read_text(errors='replace').rstrip()}")
    for path in found:
        path.unlink(missing_ok=True)


# ---- a function as a program ----


def _refuse(function: Any, why: str) -> StepError:
    name = getattr(function, "__qualname__", repr(function))
    return StepError(
        f"{name}: {why}. A step runs in other processes: give a function of a module that can be imported, a function of "
        "this program that uses modules, functions and constants only, or its source as a text"
    )


def _root_of(module: types.ModuleType) -> str:
    """The folder from which the module is imported."""
    file = pathlib.Path(str(module.__file__)).resolve()
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    return str(file.parents[depth])


def _importable(function: types.FunctionType) -> types.ModuleType | None:
    """The module in which another process finds the function by its name."""
    module = sys.modules.get(function.__module__)
    if module is None or module.__name__ == "__main__" or not getattr(module, "__file__", None):
        return None
    found: Any = module
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    is_there = found is function or getattr(found, "function", None) is function
    # A decorator runs while the module is being imported, before the name is there.
    is_coming = found is None and getattr(module.__spec__, "_initializing", False) and "<" not in function.__qualname__
    return module if is_there or is_coming else None


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


def _names_of(code: types.CodeType) -> set[str]:
    """Global names that the code may use."""
    names = {str(one.argval) for one in dis.get_instructions(code) if one.opname in _LOADS}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_of(constant)
    return names


def _definition(source: str) -> ast.stmt:
    """The statement that the source is; _source_of() may have put it into an `if`."""
    (node,) = ast.parse(source).body
    return node.body[0] if isinstance(node, ast.If) else node


def _names_of_defaults(source: str) -> set[str]:
    """Names that are looked up when the function is defined."""
    node = _definition(source)
    assert isinstance(node, ast.FunctionDef)
    defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
    return {one.id for default in defaults for one in ast.walk(default) if isinstance(one, ast.Name)}


def _literal(value: Any) -> str | None:
    """The constant as source; None: it is no number, text, or list, tuple or dict of them, or of a class of its own."""
    if type(value) is float and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or type(value) in (bool, int, float, str, bytes):
        return repr(value)
    items = [part for pair in value.items() for part in pair] if type(value) is dict else value
    if type(value) not in (tuple, list, dict):
        return None
    parts = [_literal(item) for item in items]
    if None in parts:
        return None
    if type(value) is dict:
        return "{" + ", ".join(f"{key}: {item}" for key, item in zip(parts[::2], parts[1::2], strict=True)) + "}"
    inside = ", ".join(str(part) for part in parts)
    return f"[{inside}]" if type(value) is list else f"({inside},)" if parts else "()"


def _source_of(function: types.FunctionType) -> str:
    """The text of the function without decorators. One that is indented stands in an `if`: its texts of several lines stay."""
    try:
        text = inspect.getsource(function)
        is_indented = text[:1].isspace()
        text = "if True:\n" + text if is_indented else text
        node = _definition(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        raise _refuse(function, "its source cannot be found") from None
    if not isinstance(node, ast.FunctionDef):
        raise _refuse(function, "it is no plain function")
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    return "\n".join(["if True:", *lines] if is_indented else lines)


def _is_of_module(value: Any) -> bool:
    """May it be imported by its name?"""
    module = sys.modules.get(str(getattr(value, "__module__", "")))
    return value is not None and getattr(module, str(getattr(value, "__name__", "")), None) is value


class _Bundle:
    """The source of a function of __main__, with what it uses."""

    def __init__(self, function: types.FunctionType) -> None:
        self.paths: list[str] = []
        self._parts: list[str] = []
        self._done = {function.__name__}
        self._function(function)

    @property
    def code(self) -> str:
        return "\n\n".join(self._parts)

    def _module(self, module: types.ModuleType) -> None:
        if getattr(module, "__file__", None):
            self.paths.append(_root_of(module))

    def _function(self, function: types.FunctionType) -> None:
        if function.__closure__:
            names = ", ".join(function.__code__.co_freevars)
            raise _refuse(function, f"it is a closure: it keeps {names} from the function around it")
        text = _source_of(function)
        for name in sorted(_names_of(function.__code__) | _names_of_defaults(text)):
            if name in function.__globals__ and name not in self._done:
                self._done.add(name)
                self._global(function, name, function.__globals__[name])
        self._parts.append(text)

    def _global(self, user: types.FunctionType, name: str, value: Any) -> None:
        if value is user:
            return
        if isinstance(value, types.ModuleType):
            self._module(value)
            self._parts.append(f"import {value.__name__} as {name}")
        elif (literal := _literal(value)) is not None:
            self._parts.append(f"{name} = {literal}")
        elif isinstance(value, Step) and value.function is not None:
            self._global(user, name, value.function)
        elif isinstance(value, types.FunctionType) and value.__module__ == "__main__":
            if value.__name__ != name:
                raise _refuse(user, f"it uses {name}, which is {value.__name__} under another name")
            self._function(value)
        elif _is_of_module(value):
            if value.__module__ == "__main__":
                raise _refuse(user, f"it uses {name}, a {type(value).__name__} of this program")
            self._module(sys.modules[value.__module__])
            self._parts.append(f"from {value.__module__} import {getattr(value, '__name__')} as {name}")  # noqa: B009
        else:
            raise _refuse(user, f"it uses the global {name}, a {type(value).__name__}, which cannot be given along")


def _program(given: Callable[..., Any] | str, name: str | None) -> tuple[str, str, list[str]]:
    """Source of a program that has the function; its name there; folders of modules."""
    if isinstance(given, str):
        try:
            functions = [node.name for node in ast.parse(given).body if isinstance(node, ast.FunctionDef)]
        except SyntaxError as error:
            raise StepError(f"the source of a step: {error}") from None
        if not functions or (name is not None and name not in functions):
            raise StepError("the source of a step defines a function; the last one is the step")
        return given, name or functions[-1], []
    if not isinstance(given, types.FunctionType):
        raise _refuse(given, f"a {type(given).__name__} is no function")
    if given.__name__ == "<lambda>":
        raise _refuse(given, "a lambda has no name by which another process finds it")
    if inspect.isgeneratorfunction(given) or inspect.iscoroutinefunction(given):
        raise _refuse(given, "it does not return a value but yields or awaits")
    module = _importable(given)
    if module is not None:
        digest = hashlib.sha256(pathlib.Path(str(module.__file__)).read_bytes()).hexdigest()
        first, *rest = given.__qualname__.split(".")
        code = f"# sha256 of its source: {digest}\nfrom {module.__name__} import {first}"
        return code, ".".join([first, *rest]), [_root_of(module)]
    if given.__module__ != "__main__" and "<locals>" not in given.__qualname__:
        raise _refuse(given, f"{given.__module__} does not have it under this name, or is no file")
    bundle = _Bundle(given)
    return bundle.code, given.__name__, bundle.paths


def _annotated(function: Callable[..., Any] | str) -> tuple[str | None, str | None]:
    """What annotations say of the argument and of the result: (takes, output)."""
    if isinstance(function, str):
        return None, None
    hints = getattr(function, "__annotations__", {})
    parameters = list(inspect.signature(function).parameters)
    known = {str: "str", bytes: "bytes", "str": "str", "bytes": "bytes"}

    def look(name: str) -> str | None:
        hint = hints.get(name)
        return known.get(hint) if isinstance(hint, (str, type)) else None

    return look(parameters[0]) if parameters else None, "string" if look("return") else None


class Step:
    """A Python function as a step of a pipeline; made by presto.step(). Calling it calls the function, here.

    Attributes:
        function:   the function; None if its source was given.
        definition: what a pipeline file would say of it.
    """

    def __init__(self, function: Callable[..., Any] | None, definition: dict[str, Any]) -> None:
        self.function = function
        self.definition = definition
        self.__doc__ = getattr(function, "__doc__", None)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if self.function is None:
            raise TypeError("this step was made of source")
        return self.function(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"<presto.Step {self.definition.get('yields', '')}: {pathlib.Path(self.definition['run'][1]).stem}>"


@overload
def step(
    function: Callable[..., Any] | str,
    *,
    output: str | None = ...,
    yields: str | None = ...,
    workers: int | None = ...,
    takes: str | None = ...,
    features: Iterable[str] = ...,
    sets: Mapping[str, str] | None = ...,
    random: bool = ...,
    drops: bool = ...,
    timeout: float | None = ...,
    start_timeout: float | None = ...,
    reads: str | None = ...,
    name: str | None = ...,
) -> Step: ...
@overload
def step(
    function: None = None,
    *,
    output: str | None = ...,
    yields: str | None = ...,
    workers: int | None = ...,
    takes: str | None = ...,
    features: Iterable[str] = ...,
    sets: Mapping[str, str] | None = ...,
    random: bool = ...,
    drops: bool = ...,
    timeout: float | None = ...,
    start_timeout: float | None = ...,
    reads: str | None = ...,
    name: str | None = ...,
) -> Callable[[Callable[..., Any]], Step]: ...
def step(
    function: Callable[..., Any] | str | None = None,
    *,
    output: str | None = None,
    yields: str | None = None,
    workers: int | None = None,
    takes: str | None = None,
    features: Iterable[str] = (),
    sets: Mapping[str, str] | None = None,
    random: bool = False,
    drops: bool = False,
    timeout: float | None = None,
    start_timeout: float | None = None,
    reads: str | None = None,
    name: str | None = None,
) -> Step | Callable[[Callable[..., Any]], Step]:
    """A Python function as a step of a pipeline: stored, split, cached, timed and swept like any other.

        def halve(image):
            return image[::2, ::2]

        step = presto.step(halve, output="uint8[?,?,3]", yields="halved", workers=4)
        pipeline = presto.Pipeline("cv").after("decoded", step)
        presto.write("photos", "halves", pipeline=pipeline, up_to="halved")

    The function runs in processes of its own, `workers` at most, which start when samples come (docs/own-steps.md). It gets
    the value of the step before: a NumPy array, which it must not write into, or a str or bytes, if its argument is
    annotated so or `takes` says so. It returns the new value. Also as a decorator: @presto.step(output=...).

    The function must be found there: it is one of a module that can be imported; or one of this program or notebook, whose
    source is taken along with the modules, functions and constants (numbers, texts, lists of them) that it names; or its
    source, a text that defines it. Lambdas, closures, methods, classes of this program and other globals are refused with
    presto.StepError. The script is kept in ~/.cache/presto/steps; its name has a hash of the source, or of the file of the
    module, so that caches, resumed runs and strategies see a change. They do not see changes of modules that it imports.

    What the function raises ends the run: a presto.StorageError with the traceback as a note, and the file of the sample.
    presto.BadSample says that only this sample is bad: `on_error` decides.

    Args:
        output:   dtype and shape of the result: "float32[128]", "uint8[?,?,3]", "string". Needed unless the function is
                  annotated to return str or bytes. A result of another kind ends the run.
        yields:   what the representation is called; only then it can be stored.
        workers:  processes at most. Default: one for each thread.
        takes:    "array", "bytes" or "str".
        features: names of other features, which come as keywords: fn(image, label=...). As they are stored: NumPy arrays,
                  or bytes; a tensor as its serialized TensorProto.
        sets:     {"boxes": "float32[?,4]"}: other features that it may give; then it returns (value, {"boxes": ...}).
        random:   it gets `seed`, an int that is drawn by seed, epoch and sample, and draws from that only. Never stored.
        drops:    it may return None: the sample is left out.
        timeout, start_timeout: seconds for a reply, and more for the first one.
        reads:    the feature that it works on. Default: the main one.
        name:     with source that defines several functions: which.

    Raises:
        presto.StepError: the function cannot be found by another process.
    """
    if function is None:
        options: dict[str, Any] = {k: v for k, v in locals().items() if k != "function"}

        def decorate(given: Callable[..., Any]) -> Step:
            return step(given, **options)

        return decorate
    features = names_of(features, "features")
    if sets is not None and not isinstance(sets, Mapping):
        raise TypeError(f'sets is a dict such as {{"boxes": "float32[?,4]"}}, not {sets!r}')
    code, called, paths = _program(function, name)
    hinted_takes, hinted_output = _annotated(function)
    takes, output = takes or hinted_takes or "array", output or hinted_output
    if takes not in _TAKES:
        raise ValueError(f"takes is one of {', '.join(_TAKES)}, not {takes!r}")
    if output is None:
        raise TypeError('a step needs output=, the dtype and shape of what it returns, such as "float32[128]" or "string"')
    package = str(pathlib.Path(__file__).resolve().parent.parent)
    script = _SCRIPT.format(
        paths=list(dict.fromkeys([*paths, package])),
        code=code,
        name=called,
        takes=takes,
        features=features,
        sets=bool(sets),
        draws=random,
    )
    stem = called.rpartition(".")[2]
    definition: dict[str, Any] = {
        "step": "command",
        "run": [sys.executable, keep(stem if stem.isascii() else "step", ".py", script)],
        "output": output,
        "yields": yields,
        "workers": workers,
        "features": list(features) or None,
        "sets": [f"{key}={value}" for key, value in (sets or {}).items()] or None,
        "random": random or None,
        "drops": drops or None,
        "timeout": None if timeout is None else f"{timeout}s",
        "start-timeout": None if start_timeout is None else f"{start_timeout}s",
        "reads": reads,
    }
    _expect_traces()
    kept = {key: value for key, value in definition.items() if value is not None}
    return Step(None if isinstance(function, str) else function, kept)

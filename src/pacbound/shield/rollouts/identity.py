"""What tells one policy, danger model or environment from another: a digest of its code and of what
it holds.

A folder of rollouts is resumed only with the very things it was begun with, which may come from
another process. So a digest is the same in every process (no address in memory, no order of a set)
and another one for anything that behaves differently: other weights, other captured values, another
method, another owner of the same method, other global values that a function reads. A function is
its instructions, defaults, captured values and the globals that it names, followed in turn; an
object is its class and what `pickle` would keep of it; code of installed packages is their name and
version. What has no such digest has no identity, and that is said, never passed over.

Not seen is what a function looks up while it runs: files, services, names built from strings.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import hashlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

# The key of a plan that lists the parts without an identity.
UNIDENTIFIED = "unidentified"

_PLAIN = (int, float, complex, str, bytes, range, type(None), type(...), type(NotImplemented))
_NOT_OF_A_CLASS = {"__doc__", "__module__", "__dict__", "__weakref__", "_abc_impl", "__slotnames__"}
_DESCRIPTORS = (WrapperDescriptorType, MethodDescriptorType)
_DEEPEST = 200


def digest_of(thing: Any) -> str | None:
    """The digest of what a thing does and holds; None if it has none that can be relied on."""
    try:
        return _Digests().of(thing)
    except Exception:  # whatever objects do when they are taken apart or copied
        return None


def name_of(thing: Any) -> str:
    """What a thing is called, for people."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, partial):
        named = [f"{key}={name_of(value)}" for key, value in thing.keywords.items()]
        return f"partial({', '.join([*map(name_of, (thing.func, *thing.args)), *named])})"
    if isinstance(thing, (int, float, np.number, np.bool_)) or thing is None:
        return repr(thing)
    if isinstance(thing, MethodType):
        return f"{type(thing.__self__).__qualname__}.{thing.__name__}"
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))


class UnidentifiedError(Exception):
    """A thing that no digest can be relied on for."""


class _Digests:
    """Digests of a thing and of all that it leads to."""

    def __init__(self, *, within_object: bool = False) -> None:
        # Those under way, by address: code and objects may lead back to themselves.
        self._under_way: dict[int, int] = {}
        self._done: dict[int, tuple[Any, str]] = {}
        self._within_object = within_object

    def of(self, thing: Any) -> str:
        if isinstance(thing, _PLAIN) and type(thing).__module__ == "builtins":
            return _hashed(type(thing).__name__, repr(thing))
        if id(thing) in self._under_way:
            return _hashed("again", str(self._under_way[id(thing)]))
        if id(thing) not in self._done:
            if len(self._under_way) > _DEEPEST:
                raise UnidentifiedError("too deep")
            self._under_way[id(thing)] = len(self._under_way)
            try:
                found = self._taken_apart(thing)
            finally:
                del self._under_way[id(thing)]
            # The thing is kept, so that no other one gets its address.
            self._done[id(thing)] = thing, found
        return self._done[id(thing)][1]

    def _taken_apart(self, thing: Any) -> str:
        for kinds, way in self._of_code:
            if isinstance(thing, kinds):
                return way(thing)
        if type(thing) in (list, tuple, deque):
            return self._all(type(thing).__name__, thing)
        if type(thing) in (set, frozenset):
            return _hashed(type(thing).__name__, *sorted(map(self.of, thing)))
        if type(thing) is dict:
            # In their order, which is that of the layers in a dictionary of them.
            return self._all("dict", thing.items())
        if isinstance(thing, np.generic) or type(thing) in (np.ndarray, np.memmap):
            if thing.dtype.hasobject:
                return self._all("objects", [thing.shape, thing.tolist()])
            return _hashed_array("array", np.asarray(thing), type(thing).__name__)
        return _hashed_tensor(thing) if _is_tensor(thing) else self._object(thing)

    @property
    def _of_code(self) -> tuple[tuple[Any, Callable[[Any], str]], ...]:
        """How what is code, or holds nothing but code, is taken apart, by its type."""
        return (
            (FunctionType, self._function),
            (type, self._class),
            (CodeType, self._code),
            (BuiltinFunctionType, self._builtin),
            (ModuleType, lambda x: _hashed("module", *_package(x.__name__), x.__name__)),
            (MethodType, lambda x: self._all("method", [x.__func__, x.__self__])),
            (_DESCRIPTORS, lambda x: self._all("descriptor", [x.__objclass__, x.__name__])),
            (staticmethod, lambda x: self._all("static method", [x.__func__])),
            (classmethod, lambda x: self._all("class method", [x.__func__])),
            (property, lambda x: self._all("property", [x.fget, x.fset, x.fdel])),
            (cached_property, lambda x: self._all("cached property", [x.func])),
        )

    def _builtin(self, function: Any) -> str:
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            return _hashed("builtin", str(function.__module__), function.__qualname__)
        return self._all("bound", [function.__name__, owner])

    def _all(self, kind: str, things: Iterable[Any]) -> str:
        return _hashed(kind, *map(self.of, things))

    def _function(self, function: FunctionType) -> str:
        if _is_installed(function.__module__):
            # Captured values are the caller's, whoever wrote the code.
            named = [function.__module__, function.__qualname__, *_package(function.__module__)]
            return self._all("installed", [*named, self._captured(function)])
        code = function.__code__
        return self._all(
            "function", [code, self._captured(function), *self._globals(code, function.__globals__)]
        )

    def _captured(self, function: FunctionType) -> tuple[Any, ...]:
        values = []
        for cell in function.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:  # a name that is not bound yet
                values.append("unbound")
        return (function.__defaults__, function.__kwdefaults__, vars(function), tuple(values))

    def _code(self, code: CodeType) -> str:
        """The instructions, wherever they stand in a file."""
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
        return self._all(
            "code",
            [code.co_name, code.co_code, code.co_exceptiontable, code.co_consts, *names, counts],
        )

    def _globals(self, code: CodeType, home: Mapping[str, Any]) -> list[Any]:
        """The names that the code reads from its module, with what they stand for, and the parts of
        modules that it names.
        """
        found: list[Any] = []
        for name in sorted(_names_read(code)):
            if name not in home:
                if not hasattr(builtins, name):
                    found.append((name, "unbound"))
                continue
            value = home[name]
            found.append((name, value))
            if isinstance(value, ModuleType) and not _is_installed(value.__name__):
                parts = sorted(_attributes_read(code) & vars(value).keys())
                found += [(name, part, vars(value)[part]) for part in parts]
        return found

    def _class(self, kind: type) -> str:
        named = [kind.__module__, kind.__qualname__, *_package(kind.__module__)]
        if _is_installed(kind.__module__):
            return self._all("installed class", named)
        held = [
            (name, value)
            for name, value in sorted(vars(kind).items())
            if name not in _NOT_OF_A_CLASS and not _is_about_the_source(name, value)
        ]
        return self._all("class", [kind.__qualname__, type(kind), kind.__bases__, held])

    def _object(self, thing: Any) -> str:
        outermost, self._within_object = not self._within_object, True
        try:
            if outermost and not _is_the_same_in_a_copy(thing):
                raise UnidentifiedError(f"{name_of(thing)} is never the same twice")
            return self._kept(thing)
        finally:
            self._within_object = not outermost

    def _kept(self, thing: Any) -> str:
        """What pickle would keep of an object, and its class; all that it holds, where its class
        keeps something back from pickle.
        """
        known = copyreg.dispatch_table.get(type(thing))
        kept: Any = thing.__reduce_ex__(4) if known is None else known(thing)
        if isinstance(kept, str):
            wrapped = getattr(thing, "__wrapped__", None)
            if wrapped is not None:
                return self._all("wrapper", [type(thing), wrapped])
            return self._all("named", _where_installed(thing, kept))
        make, arguments, state, items, pairs = (*kept, *[None] * 5)[:5]
        return self._all(
            "object",
            [
                type(thing),
                make,
                arguments,
                state,
                None if items is None else list(items),
                None if pairs is None else list(pairs),
                vars(thing) if _keeps_something_back(type(thing)) else None,
            ],
        )


def _is_the_same_in_a_copy(thing: Any) -> bool:
    """A copy has other addresses and the same digest, unless the digest cannot be relied on."""
    one, other = (_Digests(within_object=True).of(each) for each in (thing, deepcopy(thing)))
    return one == other


def _hashed(kind: str, *parts: str) -> str:
    # The length goes with each part, so that no two lists of parts run into the same text.
    text = "".join(f"{len(part)}:{part}" for part in (kind, *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _hashed_array(kind: str, array: Any, *more: str) -> str:
    if array.dtype.names:
        # Field by field, since the bytes between fields may be anything.
        fields = [_hashed_array(name, array[name]) for name in array.dtype.names]
        return _hashed(kind, *fields, *more)
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return _hashed(kind, str(array.dtype), str(array.shape), content, *more)


def _is_tensor(thing: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def _hashed_tensor(tensor: Any) -> str:
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    # As bytes, since NumPy does not know all of torch's types.
    content = plain.view(sys.modules["torch"].uint8).numpy() if plain.numel() else np.empty(0)
    kind, shape = str(tensor.dtype), str(tuple(tensor.shape))
    return _hashed_array("tensor", content, type(tensor).__name__, kind, shape)


def _names_read(code: CodeType) -> set[str]:
    """The global names that the code reads, that of functions within it included."""
    names = {
        step.argval for step in dis.get_instructions(code) if step.opname in _READS_A_GLOBAL_NAME
    }
    return names.union(
        *(_names_read(part) for part in code.co_consts if isinstance(part, CodeType))
    )


_READS_A_GLOBAL_NAME = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}


def _attributes_read(code: CodeType) -> set[str]:
    inner = (_attributes_read(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _is_about_the_source(name: str, value: Any) -> bool:
    """Whether an entry of a class says where it stands or what it is annotated with, not what it
    does.
    """
    special = name.startswith("__") and name.endswith("__")
    return special and not isinstance(value, (FunctionType, staticmethod, classmethod, property))


def _keeps_something_back(kind: type) -> bool:
    """Whether a class of the user's says itself what is pickled of its objects."""
    own = ("__getstate__", "__reduce__", "__reduce_ex__")
    if _is_installed(kind.__module__) or not getattr(kind, "__dictoffset__", 0):
        return False
    return any(getattr(kind, name) is not getattr(object, name) for name in own)


def _where_installed(thing: Any, name: str) -> tuple[str, ...]:
    """The installed module that has a thing under a name; functions of NumPy and SciPy do not say
    theirs.
    """
    said = getattr(thing, "__module__", None) or type(thing).__module__
    for module in (said, "numpy", "scipy.special"):
        if _is_installed(module) and getattr(sys.modules.get(module), name, None) is thing:
            return (*_package(module), module, name)
    raise UnidentifiedError(f"{name} is known by its name alone")


def _package(module: str | None) -> tuple[str, str]:
    """The package of a module, and its version."""
    top = str(module).partition(".")[0]
    said = getattr(sys.modules.get(top), "__version__", None)
    if said is None and _is_installed(top) and top not in sys.stdlib_module_names:
        said = version(top)
    return top, str(said)


def _is_installed(module: str | None) -> bool:
    """Whether code comes from Python or from an installed package, whose version stands for it."""
    top = str(module).partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is not None and not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)

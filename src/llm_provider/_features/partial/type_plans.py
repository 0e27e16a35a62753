"""The plans of values that have a Python type, by pydantic's core schema of the type."""

import contextlib
import json
import types
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from ..._core.json_values import JSONMapping
from ..._core.schemas.reading import read
from ..._core.schemas.structure import Structure, core_parts, has_open_union, load_by_attempts
from .plans import ABSENT, Plan, SchemaPlan, Shape

_OBJECTS = {"model", "dataclass", "typed-dict", "dict", "tagged-union"}
_LISTS = {"list", "tuple", "set", "frozenset"}
_SCALARS = {
    "none", "bool", "int", "float", "decimal", "complex", "str", "bytes", "date", "time", "datetime",
    "timedelta", "literal", "enum", "url", "uuid",
}  # fmt: skip
"""What JSON of a core schema may begin with. Others may begin with anything."""
_INNER = {"default": "schema", "nullable": "schema", "json-or-python": "json_schema", "definitions": "schema"}
_FIELDS = ("model-fields", "dataclass-args", "typed-dict")
_CHANGES = ("strip_whitespace", "to_lower", "to_upper")


_plans: "dict[int, TypePlan]" = {}
"""Plans by the identities of the core schemas, which they keep."""
_MOST_PLANS = 256


class TypePlan:
    """The plan of a value that has a type, by pydantic's core schema of the type."""

    def __init__(
        self, core: Any, config: JSONMapping, definitions: dict[str, Any], *, tries_all: bool
    ) -> None:
        self._core = core
        self._config = config
        self._definitions = definitions
        self._tries_all = tries_all
        self._shapes: dict[str, Shape | None] = {}
        definitions |= {part["ref"]: part for part in core.get("definitions", ())}

    @classmethod
    def of(cls, structure: Structure) -> "TypePlan":
        """The plan of a whole answer. It is kept: its validators take milliseconds to make."""
        core = structure.core
        if id(core) not in _plans:
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            _plans[id(core)] = cls(core, {}, {}, tries_all=has_open_union(structure.schema))
        return _plans[id(core)]

    @cached_property
    def _whole(self) -> Any:
        """The core schema with the definitions that it refers to."""
        needed, left = dict[str, Any](), [self._core]
        while left:
            for part in core_parts(left.pop()):
                if part.get("type") == "definition-ref" and (name := part["schema_ref"]) not in needed:
                    needed[name] = self._definitions[name]
                    left.append(needed[name])
        if not needed or self._core["type"] == "definitions":
            return self._core
        return {"type": "definitions", "schema": self._core, "definitions": [*needed.values()]}

    @cached_property
    def _validate(self) -> Callable[[str], Any]:
        from pydantic_core import SchemaValidator

        config: Any = self._config or None
        return SchemaValidator(self._whole, config).validate_json

    @cached_property
    def _structure(self) -> Structure:
        from pydantic.json_schema import GenerateJsonSchema

        schema = GenerateJsonSchema().generate(self._whole)
        load = partial(load_by_attempts, self._validate, schema) if self._tries_all else self._validate
        return Structure("part", schema, load, adaptable=True)

    def load(self, text: str) -> Any:
        if not self._tries_all:
            try:
                return self._validate(text)
            except ValueError:
                if "null" not in text:
                    raise
        return read(text, self._structure).value

    @property
    def grows(self) -> bool:
        core = self._peel(self._core)[0]
        if core["type"] == "str":
            return not any(core.get(name) or self._config.get(f"str_{name}") for name in _CHANGES)
        return bool(core["type"] == "any")

    def shape(self, bracket: str) -> Shape | None:
        if bracket not in self._shapes:
            self._shapes[bracket] = self._find_shape(self._core, bracket)
        return self._shapes[bracket]

    def _peel(self, core: Any) -> tuple[Any, int]:
        """The schema inside others that change nothing, and how many functions get an object of it."""
        functions = 0
        while True:
            kind = core["type"]
            if kind == "definition-ref":
                core = self._definitions[core["schema_ref"]]
            elif kind == "function-after" and self._peel(core["schema"])[0]["type"] in ("model", "dataclass"):
                core, functions = core["schema"], functions + 1
            elif kind in _INNER:
                core = core[_INNER[kind]]
            else:
                return core, functions

    def _find_shape(self, core: Any, bracket: str) -> Shape | None:
        core, functions = self._peel(core)
        kind, config = core["type"], core.get("config", self._config)
        if kind == "any":
            return SchemaPlan({}, {}, adaptable=False).shape(bracket)
        if kind == "union":
            choices = [each[0] if isinstance(each, tuple) else each for each in core["choices"]]
            choices = [each for each in choices if self._may_be(each, bracket)]
            return self._find_shape(choices[0], bracket) if len(choices) == 1 else None
        if not self._may_be(core, bracket):
            return None
        if kind in ("list", "tuple"):
            return self._shape_of_list(core, kind)
        if kind == "tagged-union":
            return self._shape_by_tag(core)
        if kind == "dict":
            return self._shape_of_dict(core)
        if kind in ("model", "dataclass"):
            decorators = getattr(core["cls"], "__pydantic_decorators__", None)
            validators = getattr(decorators, "model_validators", {}).values()
            own = [each for each in validators if each.info.mode == "after"]
            if functions != len(own) or core.get("root_model") or core.get("custom_init"):
                # A field's own validator may make something else of it.
                return None
            fields = self._peel(core["schema"])[0]
            is_plain = kind == "model" and not fields.get("computed_fields")
            make = partial(_make_model, core["cls"]) if is_plain else _make_namespace
            return self._shape_of_fields(fields, config, make)
        return self._shape_of_fields(core, config, dict)

    def _shape_of_fields(self, core: Any, config: JSONMapping, make: Callable[[Any], Any]) -> Shape | None:
        if core["type"] not in _FIELDS:
            # A validator gets the whole before its fields are read.
            return None
        entries = core["fields"]
        pairs = entries.items() if isinstance(entries, dict) else ((each["name"], each) for each in entries)
        plans: dict[str, tuple[str, Plan]] = {}
        for name, entry in pairs:
            key = entry.get("validation_alias", name) if config.get("validate_by_alias", True) else name
            while isinstance(key, list) and (len(key) == 1 or isinstance(key[0], list)):
                # The first of several aliases. A path into another value is not shown before the end.
                key = key[0]
            if isinstance(key, str) and not entry.get("init_only") and not _reads_others(entry["schema"]):
                plans[key] = name, self._part(entry["schema"], config)
        return Shape(plans.get, make)

    def _shape_of_list(self, core: Any, kind: str) -> Shape | None:
        items = core.get("items_schema", {"type": "any"})
        if kind == "tuple":
            if core.get("variadic_item_index") is None:
                parts = [self._part(each, self._config) for each in items]
                return Shape(lambda index: (index, parts[index]) if index < len(parts) else None, tuple)
            if len(items) > 1:
                return None
        entry = self._part(items if kind == "list" else items[0], self._config)
        return Shape(lambda index: (index, entry), list if kind == "list" else tuple)

    def _shape_of_dict(self, core: Any) -> Shape:
        keys = self._part(core.get("keys_schema", {"type": "any"}), self._config)
        entry = self._part(core.get("values_schema", {"type": "any"}), self._config)

        def find_entry(key: str) -> tuple[Any, Plan] | None:
            try:
                return keys.load(json.dumps(key)), entry
            except Exception:  # a validator may raise anything
                return None

        return Shape(find_entry)

    def _shape_by_tag(self, core: Any) -> Shape | None:
        tag, choices = core["discriminator"], core["choices"]
        while isinstance(tag, list) and len(tag) == 1:
            tag = tag[0]
        if not isinstance(tag, str):
            return None

        def choose(text: str) -> Shape | None:
            with contextlib.suppress(ValueError, TypeError, KeyError):  # a value that is no tag
                return self._find_shape(choices[json.loads(text)], "{")
            return None

        return Shape(lambda _: None, lambda _: ABSENT, tag, choose)

    def _part(self, core: Any, config: JSONMapping) -> "TypePlan":
        return TypePlan(core, config, self._definitions, tries_all=self._tries_all)

    def _may_be(self, core: Any, bracket: str) -> bool:
        kind = self._peel(core)[0]["type"]
        return kind not in _SCALARS | (_LISTS if bracket == "{" else _OBJECTS)


def _reads_others(core: Any) -> bool:
    """Whether a validator of a field may read the fields before it."""
    if isinstance(core, (list, tuple)):
        return any(map(_reads_others, core))
    if not isinstance(core, Mapping) or core.get("type") in _FIELDS:
        return False
    function = core.get("function")
    if isinstance(function, Mapping) and function.get("type") == "with-info":
        return True
    return any(
        _reads_others(part) for name, part in core.items() if name not in ("metadata", "serialization")
    )


def _make_model(cls: Any, values: dict[str, Any]) -> Any:
    """A model as by `model_construct`, but without defaults: a later field may have another value."""
    model = cls.__new__(cls)
    own = {"__dict__": values, "__pydantic_fields_set__": set(values)}
    for name, value in {**own, "__pydantic_extra__": None, "__pydantic_private__": None}.items():
        object.__setattr__(model, name, value)
    return model


def _make_namespace(values: dict[str, Any]) -> types.SimpleNamespace:
    """What its class could not print without all fields: a dataclass, or a model with computed fields."""
    return types.SimpleNamespace(**values)

"""What the parts of an answer are: the plans of values, and the shapes of the objects and lists they are in.

A `Plan` reads one value whose end was seen, as `Response.parsed` would. Its `Shape` says how the values in an
object or a list are read before its end. Without a shape, nothing of it is shown until then: of sets, of
unions whose alternatives neither their first character nor a discriminator tells apart, and of what a
validator of the user's reads as a whole.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Protocol

from ..._core.json_values import JSONMapping
from ..._core.schemas.json_schema import follow
from ..._core.schemas.reading import read
from ..._core.schemas.structure import WRAPPER, Structure, load_by_schema, strict_json

ABSENT: Final = object()
"""What an open value is while nothing of it can be shown."""


class Plan(Protocol):
    """How one value is read."""

    @property
    def grows(self) -> bool:
        """Whether the beginning of its text is the beginning of its value."""

    def load(self, text: str) -> Any:
        """The value of JSON text; `ValueError` if it does not match."""

    def shape(self, bracket: str) -> "Shape | None":
        """How the values in it are read, if it begins with this bracket."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the values in an object or a list are read."""

    child: Callable[[Any], tuple[Any, Plan] | None]
    """From a key of the JSON, or a number, to the name of the field and its plan; None if it is not shown."""
    make: Callable[[Any], Any] = lambda values: values
    """Makes the container of a dict of fields, or of a list. It may keep its argument."""
    tag: str | None = None
    """The key whose value says which shape the object has."""
    choose: "Callable[[str], Shape | None]" = lambda _: None
    """From the JSON of this value to the shape."""
    decide: "Callable[[str], Shape | None] | None" = None
    """From the first key of the object to its shape."""


def shape_of_answer(structure: Structure, plan: Plan, *, is_object: bool) -> Shape | None:
    """The shape of the JSON of an answer. If the answer is no object, an object may be a wrapper of it."""
    shape = plan.shape("{" if is_object else "[")
    if structure.is_object or not is_object:
        return shape
    wrapper = Shape(lambda key: ("", plan) if key == WRAPPER else None, lambda values: values.get("", ABSENT))
    # Alternatives may have such a field, too.
    is_unclear = shape is not None and (shape.tag is not None or shape.child(WRAPPER) is not None)
    wrapped = None if is_unclear else wrapper
    return Shape(lambda _: None, decide=lambda key: wrapped if key == WRAPPER else shape)


class SchemaPlan:
    """The plan of a value that has a JSON schema, or none."""

    def __init__(self, schema: Any, root: JSONMapping, *, adaptable: bool) -> None:
        self._given = {"not": {}} if schema is False else schema if isinstance(schema, Mapping) else {}
        resolved = follow(self._given, root)
        self._schema: JSONMapping = resolved if isinstance(resolved, Mapping) else {}
        self._root = root
        self._adaptable = adaptable
        self._plans: dict[Any, SchemaPlan] = {}

    @classmethod
    def of(cls, structure: Structure) -> "SchemaPlan":
        """The plan of a whole answer. Its references lead into `$defs`, so that any part has them."""
        text = json.dumps(structure.schema).replace('"$ref": "#', '"$ref": "#/$defs/answer')
        root = {"$defs": {"answer": json.loads(text)}}
        return cls(root["$defs"]["answer"], root, adaptable=structure.adaptable)

    @property
    def grows(self) -> bool:
        return self.may_be("string", "null") and not self._schema.keys() & {"enum", "const"}

    def load(self, text: str) -> Any:
        return read(text, self._structure).value

    @cached_property
    def _structure(self) -> Structure:
        if not self._given:
            return Structure("part", None, strict_json)
        schema = {**self._given, **self._root}
        return Structure("part", schema, partial(load_by_schema, schema), adaptable=self._adaptable)

    def shape(self, bracket: str) -> Shape | None:
        schema, kind = self._schema, "object" if bracket == "{" else "array"
        if not self.may_be(kind) or schema.keys() & {"enum", "const"}:
            return None
        if inner := self._alternatives:
            inner = [part for part in inner if part.may_be(kind)]
            return inner[0].shape(bracket) if len(inner) == 1 and "properties" not in schema else None
        return Shape(self._find_field if kind == "object" else self._find_entry)

    def _find_field(self, key: str) -> "tuple[Any, SchemaPlan] | None":
        known = self._schema.get("properties", {})
        if key in known:
            return key, self._part(key, known[key])
        others = self._schema.get("additionalProperties")
        return None if "patternProperties" in self._schema else (key, self._part(None, others))

    def _find_entry(self, index: int) -> "tuple[Any, SchemaPlan]":
        first = self._schema.get("prefixItems", ())
        number = min(index, len(first))
        return index, self._part(number, [*first, self._schema.get("items")][number])

    def _part(self, key: Any, schema: Any) -> "SchemaPlan":
        if key not in self._plans:
            self._plans[key] = SchemaPlan(schema, self._root, adaptable=self._adaptable)
        return self._plans[key]

    @cached_property
    def _alternatives(self) -> "list[SchemaPlan]":
        parts = [part for word in ("anyOf", "oneOf", "allOf") for part in self._schema.get(word, ())]
        return [self._part((number,), part) for number, part in enumerate(parts)]

    def may_be(self, kind: str, only_with: str | None = None) -> bool:
        """Whether the value may be of a kind, and of no other one than `only_with`."""
        kinds = self._schema.get("type", kind)
        kinds = kinds if isinstance(kinds, list) else [kinds]
        inner = self._alternatives
        if only_with is None:
            return kind in kinds and (not inner or any(part.may_be(kind) for part in inner))
        is_only = all(each in (kind, only_with) for each in kinds)
        return is_only and all(part.may_be(kind, only_with) for part in inner)

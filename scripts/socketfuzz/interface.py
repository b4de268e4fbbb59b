# SPDX-License-Identifier: Apache-2.0
"""Parses the interface descriptions of a Varlink service (https://varlink.org/Interface-Definition)."""

import dataclasses
import re


@dataclasses.dataclass
class Type:
    """The type of a field: `kind` is bool, int, float, string, object, name, enum, struct, array, map or maybe."""

    kind: str
    name: str = ""
    words: tuple[str, ...] = ()
    fields: tuple[tuple[str, "Type"], ...] = ()
    of: "Type | None" = None


@dataclasses.dataclass
class Method:
    """A method by its full name, and its parameters in order."""

    name: str
    parameters: tuple[tuple[str, Type], ...]

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


@dataclasses.dataclass
class Interface:
    """A parsed description."""

    name: str
    methods: list[Method]
    types: dict[str, Type]


class Reader:
    """A recursive descent parser of a description's tokens."""

    def __init__(self, text: str):
        self.tokens: list[str] = re.findall(r"->|\[\]|\[string\]|[?(),:]|[A-Za-z_][\w.-]*", re.sub(r"#.*", "", text))
        self.at = 0

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.next()
        if not token or (wanted and token != wanted):
            raise ValueError(f"token {self.at} of the interface is {token!r}, not {wanted or 'another one'!r}")
        self.at += 1
        return token

    def type(self) -> Type:
        token = self.next()
        for mark, kind in (("?", "maybe"), ("[]", "array"), ("[string]", "map")):
            if token == mark:
                self.take()
                return Type(kind, of=self.type())
        if token == "(":
            return self.struct()
        self.take()
        simple = token in ("bool", "int", "float", "string", "object")
        return Type(token) if simple else Type("name", name=token)

    def struct(self) -> Type:
        """`(name: type, …)`, or the members of an enumeration, `(one, two)`."""
        self.take("(")
        fields: list[tuple[str, Type]] = []
        words: list[str] = []
        while self.next() != ")":
            name = self.take()
            if self.next() == ":":
                self.take()
                fields.append((name, self.type()))
            else:
                words.append(name)
            if self.next() == ",":
                self.take()
        self.take(")")
        return Type("enum", words=tuple(words)) if words else Type("struct", fields=tuple(fields))


def parse(description: str) -> Interface:
    """Parses a description."""
    reader = Reader(description)
    reader.take("interface")
    found = Interface(reader.take(), [], {})
    while reader.next():
        what, name = reader.take(), reader.take()
        first = reader.struct()
        if what == "type":
            found.types[name] = first
        elif what == "method":
            reader.take("->")
            reader.struct()
            found.methods.append(Method(f"{found.name}.{name}", first.fields))
        elif what != "error":
            raise ValueError(f"an interface has no {what!r}")
    return found

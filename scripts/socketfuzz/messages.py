# SPDX-License-Identifier: Apache-2.0
"""Makes Varlink calls: valid ones by the types of an interface, and mutations of them."""

import base64
import dataclasses
import fnmatch
import json
import random
from collections.abc import Sequence
from typing import Any

from .interface import Interface, Method, Type

MARKS = "\u0301\u0323"
# Calls that may wait for something, so that a reply cannot be expected.
WAITING = (
    "Start", "Stop", "Restart", "Foreground", "Background", "Suspend", "Resume", "Interrupt", "Kill", "Hold", "Reset",
    "Wait", "Apply", "Attach", "RecordPolicies", "SaveState", "SaveSnapshot", "Post", "Subscribe", "Doctor",
    "Owners",
)  # fmt: skip
# Calls that would end or replace the supervisor.
EXCLUDED = ("Upgrade",)


@dataclasses.dataclass
class Raw:
    """Literal JSON text."""

    text: str


@dataclasses.dataclass
class Pairs:
    """An object with possibly repeated names."""

    members: list[tuple[str, Any]]


def encode(value: Any) -> str:
    """JSON that may contain Raw and Pairs, with lone surrogates as escapes."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(name)}:{encode(each)}" for name, each in value.members) + "}"
    if isinstance(value, dict):
        return encode(Pairs(list(value.items())))
    if isinstance(value, list):
        return "[" + ",".join(encode(each) for each in value) + "]"
    return json.dumps(value)


def strings(value: Any) -> list[str]:
    """Every string in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.items() for part in each for text in strings(part)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return []


@dataclasses.dataclass
class Hints:
    """Names that exist in the supervisor under test."""

    apps: list[str]
    patterns: list[str]
    # Apps that no call may change.
    untouched: list[str]
    signals: Sequence[str] = ("USR1", "SIGUSR2", "HUP", "CONT", "STOP", "TERM", "KILL", "10", "SIGRTMIN+3", "WINCH")
    states: Sequence[str] = ("active", "background", "suspended", "inactive", "not-running")
    topics: Sequence[str] = ("news", "jobs", "jobs.one", "device", "battery", "nothing")
    files: Sequence[str] = ("state", "link", "fifo", "folder", "second", "../state", "/etc/shadow", ".", "", "large")


class Maker:
    """Makes random calls; reuses ids, tokens and cursors from replies."""

    def __init__(self, chance: random.Random, interfaces: list[Interface], hints: Hints):
        self.chance = chance
        self.types = {name: each for interface in interfaces for name, each in interface.types.items()}
        self.methods = [
            method for interface in interfaces for method in interface.methods if method.short not in EXCLUDED
        ]
        self.hints = hints
        self.heard: dict[str, list[Any]] = {}
        self.interfaces = [interface.name for interface in interfaces]

    def hear(self, parameters: Any) -> None:
        """Remembers the values of a reply."""
        if isinstance(parameters, dict):
            for name, value in parameters.items():
                if name in ("id", "token", "cursor", "sequence", "incarnation", "at") and value is not None:
                    known = self.heard.setdefault(name, [])
                    known.append(value)
                    del known[:-24]
                self.hear(value)
        elif isinstance(parameters, list):
            for value in parameters[:64]:
                self.hear(value)

    # Valid calls.

    def call(self, method: Method | None = None) -> dict[str, Any]:
        """A valid call of `method`, or of any method."""
        method = method or self.chance.choice(self.methods)
        parameters: dict[str, Any] = {}
        for name, kind in method.parameters:
            value = self.value(kind, name, method.short)
            if value is not None or self.chance.random() < 0.2:
                parameters[name] = value
        if "timeout_ms" in dict(method.parameters):
            parameters["timeout_ms"] = self.chance.choice([0, 1, 20, 200, 600])
        if method.short in ("Logs", "Events", "RecordPolicies") and self.chance.random() < 0.9:
            parameters.pop("follow", None)
        call: dict[str, Any] = {"method": method.name, "parameters": parameters}
        if not parameters and self.chance.random() < 0.3:
            del call["parameters"]
        for name, likely in (("more", 0.25), ("oneway", 0.06), ("upgrade", 0.02)):
            if self.chance.random() < likely:
                call[name] = self.chance.random() < 0.9
        return call

    def value(self, kind: Type, name: str, method: str) -> Any:
        """A value of a type; `name` tells its meaning."""
        chance = self.chance
        if kind.kind == "maybe" and kind.of is not None:
            return None if chance.random() < 0.5 else self.value(kind.of, name, method)
        if kind.kind == "array" and kind.of is not None:
            inner = kind.of
            return [self.value(inner, name, method) for _ in range(chance.choice([0, 1, 1, 1, 2, 3, 8]))]
        if kind.kind == "map" and kind.of is not None:
            inner = kind.of
            return {self.text(): self.value(inner, name, method) for _ in range(chance.randrange(4))}
        if kind.kind == "name":
            return self.value(self.types.get(kind.name, Type("object")), name, method)
        if kind.kind == "struct":
            return {field: self.value(each, field, method) for field, each in kind.fields}
        if kind.kind == "enum":
            return chance.choice(kind.words)
        if kind.kind == "bool":
            return chance.random() < 0.5
        if kind.kind == "float":
            return chance.choice([0.0, -1.5, 1e300, chance.random()])
        if kind.kind == "int":
            return self.number(name)
        if kind.kind == "object":
            return self.anything(3)
        return self.word(name, method)

    def number(self, name: str) -> int:
        source = {"after": "id", "done": "id", "drop": "id", "tokens": "token", "tasks": "token", "since": "at"}
        known = [each for each in self.heard.get(source.get(name, name), []) if isinstance(each, int)]
        if known and self.chance.random() < 0.7:
            return self.chance.choice(known)
        if name.endswith("_ms"):
            return self.chance.choice([0, 1, 10, 100, 500])
        return self.chance.choice([0, 1, 2, 3, 7, 100, 4096, -1, 1 << 31, (1 << 63) - 1, -(1 << 63)])

    def word(self, name: str, method: str) -> str:
        """A string, usually one that means something for its field."""
        chance, hints = self.chance, self.hints
        if chance.random() < 0.08:
            return self.text()
        if name == "interface":
            return chance.choice([*self.interfaces, "org.varlink.service", "io.torpor.Nothing"])
        if name in ("app", "apps"):
            return chance.choice(hints.apps + (hints.patterns if name == "apps" else []))
        if name == "token":
            known = [each for each in self.heard.get("token", []) if isinstance(each, str)]
            if known and chance.random() < 0.3:
                return chance.choice(known)
            token = f"{chance.getrandbits(chance.choice([4, 32, 64])):x}"
            self.hear({"token": token})
            return token
        if name == "cursor":
            return str(chance.choice(self.heard.get("cursor") or ["0"]))
        if name == "data":
            return base64.b64encode(chance.randbytes(chance.choice([0, 1, 100, 3000, 60000]))).decode()
        words: dict[str, Sequence[str]] = {
            "signal": hints.signals, "state": hints.states, "topic": hints.topics, "file": hints.files,
            "coalesce": ("all", "latest", "count", "merge", "net", "other"), "key": ("a", "b", "c"),
            "wake": ("background", "foreground", "none"), "url": ("https://example.org/", "x:y", ""),
            "fetch": ("new-data", "no-data", "failed"), "declines": ("url", "restoration", "snapshot", "soup"),
            "grep": ("a", ".*", "(((", "[a-", "x{1,9999}"), "name": ("upload", "sync", "work"),
            "sender": ("fuzz", "v-plain", "root"),
        }  # fmt: skip
        return chance.choice(words[name]) if name in words else self.text()

    def text(self) -> str:
        """Any string: short, long, with combining marks, lone surrogates or control characters."""
        chance = self.chance
        return chance.choice([
            "", "a", "ä€𝄞", "e" + MARKS * chance.choice([1, 5, 40, 4000]), "\ud800", "\udfff\ud800", "\x00",
            "\x1b[31m\x07", "x" * chance.choice([63, 64, 255, 256, 4096, 70000]), "%s%n", "../../etc", "v-*",
            "tag:victim", "\u202e\ufeff\uffff", "-1", "null", "\r\n",
        ])  # fmt: skip

    def anything(self, depth: int) -> Any:
        """Any JSON."""
        chance = self.chance
        kind = chance.randrange(9 if depth > 0 else 6)
        if kind < 6:
            return [None, True, self.text(), self.number(""), chance.random(), "w"][kind]
        if kind == 6:
            return [self.anything(depth - 1) for _ in range(chance.randrange(4))]
        return {chance.choice("abcdef"): self.anything(depth - 1) for _ in range(chance.randrange(5))}

    # Invalid calls.

    def hostile(self) -> Any:
        """A value that is invalid for every field."""
        chance = self.chance
        depth = chance.choice([10, 63, 64, 65, 2000])
        if chance.random() < 0.25:
            return self.large()
        return chance.choice([
            Raw("1e999"), Raw("-0"), Raw("1" * chance.choice([19, 20, 400])), Raw("0.1e-400"), Raw("1.5"), Raw("01"),
            Raw("9223372036854775807"), Raw("9223372036854775808"), Raw("-9223372036854775808"), Raw("NaN"),
            Raw("[" * depth + "]" * depth), Raw('{"a":' * depth + "1" + "}" * depth), Raw("[" * 5000),
            Raw('"\\ud800"'), Raw('"\\udc00\\ud800"'), Raw('"\\u0000"'), Raw('"\\x"'), Raw('"a\nb"'), Raw("tru"), Raw(""),
            None, True, [], {}, "", self.text(), self.anything(4), Pairs([("a" + MARKS * 30, 1), ("a" + MARKS[::-1] * 30, 2)]),
        ])  # fmt: skip

    def large(self) -> Any:
        """A value with very many parts."""
        kind = self.chance.randrange(8)
        if kind == 0:
            return ["v-plain"] * 5000
        if kind == 1:
            return "a" * 300_000
        if kind == 2:
            return list(range(-100_000, 0))
        if kind == 3:
            return [1] * 200_000
        if kind == 4:
            return [[]] * 100_000
        if kind == 5:
            return ("e" + MARKS * 2000) * self.chance.choice([1, 20])
        if kind == 6:
            return Pairs([(f"k{number}", number) for number in range(self.chance.choice([23, 24, 25, 5000]))])
        return Pairs([("k" + MARKS * 20 + str(number), number) for number in range(2000)])

    def mutated(self) -> bytes:
        """A call with a mistake, as bytes."""
        chance = self.chance
        call = self.call()
        parameters = dict(call.get("parameters") or {})
        kind = chance.randrange(11)
        if kind == 0 and parameters:
            parameters[chance.choice(list(parameters))] = self.hostile()
        elif kind == 1 and parameters:
            del parameters[chance.choice(list(parameters))]
        elif kind == 2:
            parameters[self.text()] = self.hostile()
        elif kind == 3:
            call[chance.choice(["method", "more", "oneway", "upgrade", "extra"])] = self.hostile()
        elif kind == 4:
            call["method"] = chance.choice([
                "", ".", "io.torpor.Manager", "io.torpor.Manager.", "GetInfo", "io.torpor.Manager.list", "a." * 5000,
                "org.varlink.service.GetInfo\u0301", call["method"] + "\u0323", call["method"] + "x", self.text(),
            ])  # fmt: skip
        elif kind == 5:
            call.pop("method")
        call["parameters"] = self.hostile() if kind == 6 else parameters
        if kind == 7:
            name = chance.choice(["method", "parameters", "more"])
            call_text = encode(Pairs([*call.items(), (name, call.get(name, True))]))
        elif kind == 8:
            call_text = encode([call] * chance.choice([0, 1, 3]))
        else:
            call_text = encode(call)
        found = bytearray(call_text.encode("utf-8", "surrogatepass"))
        if kind >= 9 and found:
            for _ in range(chance.choice([1, 1, 2, 8])):
                self.spoil(found)
        return bytes(found).replace(b"\0", b"\x01") or b" "

    def spoil(self, found: bytearray) -> None:
        """Changes bytes blindly."""
        chance = self.chance
        at = chance.randrange(len(found) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(found):
            found[at] = chance.randrange(1, 256)
        elif kind == 1:
            del found[at : at + chance.choice([1, 2, 30])]
        elif kind == 2:
            found[at:at] = chance.choice([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xcc\x81" * 50, b'"', b"{", b"\\u"])
        elif kind == 3:
            found[at:at] = found[at : at + 40]
        else:
            del found[at:]

    def is_harmless(self, message: bytes) -> bool:
        """Whether the message affects only victims, and does not end the supervisor."""
        if any(name.encode() in message for name in EXCLUDED):
            return False
        try:
            call = json.loads(message)
        except (ValueError, RecursionError):
            return True
        return not any(self.names_untouched(text) for text in set(strings(call)))

    def names_untouched(self, text: str) -> bool:
        if any(name in text for name in self.hints.untouched[:2]):
            return True
        # The supervisor's globs have no character classes.
        return len(text) < 5000 and ("*" in text or "?" in text) and any(
            fnmatch.fnmatchcase(name, text.replace("[", "[[]")) for name in self.hints.untouched
        )

    def wide(self) -> bytes:
        """A read-only call that is as expensive as a message's size allows."""
        chance = self.chance
        kind = chance.randrange(4)
        if kind == 0:
            text = "a" * chance.choice([1, 200, 8000, 15_000, 500_000]) + "b"
            look = {"app": "v-log", "lines": 1000, "grep": text}
            return encode({"method": "io.torpor.Manager.Logs", "parameters": look}).encode()
        patterns = [
            chance.choice(["*", "crowd@*9", "crowd", "tag:victim", "v-plain", "crowd@299", "*" * chance.choice([3, 100, 5000])])
            for _ in range(chance.choice([1, 3]))
        ]
        size = sum(len(each) + 4 for each in patterns)
        count = max(1, chance.choice([10, 64, 1000, 900_000 // size]) // len(patterns))
        method = chance.choice(["List", "List", "Timers"])
        call = {"method": f"io.torpor.Manager.{method}", "parameters": {"apps": patterns * count}}
        return encode(call).encode()[: (1 << 20) - 1]

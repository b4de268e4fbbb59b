# SPDX-License-Identifier: Apache-2.0
"""What a program consists of, as the linker says."""

import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parent.parent.parent.parent
RELEASE = ROOT / ".build/release"
# Where packages have programs, and the product of the build that each one is.
PROGRAMS = ("usr/sbin/*", "usr/bin/*", "usr/libexec/torpor/*", "usr/lib/torpor/*.so", "usr/lib/torpor/policies/*.so")
SWIFT = "Apache-2.0 WITH Swift-exception"


class Terms(NamedTuple):
    """Under which terms a component is: as SPDX writes its licence, as Debian's copyright files do, and whose it is."""

    licence: str
    debian: str
    holders: tuple[str, ...]
    what: str


def of_swift(what: str) -> Terms:
    holders = ("2014-2026 Apple Inc. and the Swift project authors",)
    return Terms(SWIFT, "Apache-2.0 with Swift-exception", holders, what)


# Static libraries of the Swift toolchain, by name, with the repository of their sources.
TOOLCHAIN = (
    (r"lib_FoundationCollections", "swift-collections", of_swift("data structures of Swift's Foundation")),
    (r"lib_?Foundation(?!ICU)\w*", "swift-foundation", of_swift("Swift's Foundation (FoundationEssentials)")),
    (r"lib(dispatch|BlocksRuntime)", "swift-corelibs-libdispatch", of_swift("threads of Swift's runtime")),
    (r"lib_?swift\w*|swiftrt", "swift", of_swift("the Swift standard library and runtime")),
)
# Source packages of Debian, with the terms of what is taken of them.
DEBIAN = {
    "gcc": Terms(
        "GPL-3.0-or-later WITH GCC-exception-3.1", "GPL-3+ with GCC-exception",
        ("1985-2023 Free Software Foundation, Inc.",), "libstdc++ and libgcc",
    ),
    "glibc": Terms(
        "LGPL-2.1-or-later", "LGPL-2.1+", ("1991-2023 Free Software Foundation, Inc.",),
        "the GNU C Library: whole in torpor-keeper, its start files in all programs. The source is Debian's source package"
        " glibc, in the version that Built-Using names; \"make release\" makes torpor-keeper with another one",
    ),
    "tomlplusplus": Terms(
        "MIT", "Expat",
        ("2020-2022 Mark Gillard <mark.gillard@outlook.com.au>", "2008-2009 Bjoern Hoehrmann <bjoern@hoehrmann.de>"),
        "toml++, which reads the configuration",
    ),
}  # fmt: skip
# Packages all of whose code is in headers.
HEADERS = {"libtomlplusplus-dev"}
# What the code of a component contains, for the check: it does not believe the linker's list alone.
MARKS = {
    "glibc": rb"GNU C Library \(|FATAL: kernel too old",
    "swift": rb"swift5_protocols",
    # The few declarations of packaging/link/foundation have the module's name, too.
    "swift-foundation": rb"_CalendarGregorian",
    "swift-argument-parser": rb"ArgumentParser",
    "tomlplusplus": rb"toml::v3|N4toml",
}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def fail(message: str) -> NoReturn:
    sys.exit(f"packaging/deb/components: {message}")


class Component:
    """Software whose code is in a program."""

    def __init__(self, name: str, version: str, terms: Terms, supplier: str, source: str, purl: str, comment: str = ""):
        self.name, self.version, self.terms = name, version, terms
        self.supplier, self.source, self.purl, self.comment = supplier, source, purl, comment
        self.id = "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)

    def entry(self) -> dict:
        entry = {
            "SPDXID": self.id,
            "name": self.name,
            "versionInfo": self.version,
            "supplier": self.supplier,
            "downloadLocation": self.source,
            "filesAnalyzed": False,
            "licenseConcluded": self.terms.licence,
            "licenseDeclared": self.terms.licence,
            "copyrightText": "NOASSERTION",
            "externalRefs": [
                {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": self.purl}
            ],
        }
        if self.comment:
            entry["comment"] = self.comment
        return entry


@cache
def toolchain() -> str:
    """The tag of the compiler's sources, such as swift-6.3.1-RELEASE."""
    match = re.search(r"\((swift-[\w.-]+)\)", output(os.environ.get("SWIFT", "swift"), "--version"))
    if match is None:
        fail("the compiler does not say of which sources it is: swift --version")
    return match[1]


@cache
def of_toolchain(file: str) -> Component:
    for pattern, name, terms in TOOLCHAIN:
        if re.fullmatch(pattern, Path(file).stem):
            repository = f"swiftlang/{name}" if name != "swift-collections" else "apple/swift-collections"
            version = toolchain()
            return Component(
                name, version, terms, "Organization: The Swift project", f"git+https://github.com/{repository}",
                f"pkg:github/{repository}@{version}", "A static library of the Swift toolchain.",
            )  # fmt: skip
    fail(f"{file} is linked, and no component has it: TOOLCHAIN")


def debian_packages(files: list[str]) -> dict[str, str]:
    """Of each file the package that it is in, without those of no package. One question for all: each takes half a second."""
    # The linker has /lib, which is a link to /usr/lib; dpkg has whichever the package names.
    spellings: dict[str, str] = {}
    for file in files:
        for path in (file, os.path.realpath(file)):
            spellings |= {path: file, path.removeprefix("/usr"): file}
    if not spellings:
        return {}
    found = subprocess.run(["dpkg-query", "--search", *spellings], capture_output=True, text=True).stdout
    lines = [line.split(": ", 1) for line in found.splitlines() if not line.startswith("diversion by")]
    return {spellings[path]: packages.split(", ")[0] for packages, path in lines}


@cache
def of_debian(package: str) -> Component:
    form = "${source:Package}\t${source:Version}"
    source, version = output("dpkg-query", "--show", f"--showformat={form}", package).split("\t")
    name = re.sub(r"^gcc-\d+$", "gcc", source)
    if name not in DEBIAN:
        fail(f"code of Debian's {source} is linked, and its licence is not known here: DEBIAN")
    return Component(
        name, version, DEBIAN[name], "Organization: Debian", f"https://snapshot.debian.org/package/{source}/{version}/",
        f"pkg:deb/debian/{source}@{version}?arch=source", f"From Debian's source package {source}.",
    )  # fmt: skip


@cache
def checkouts() -> dict[str, Component]:
    """The modules of the packages that SwiftPM has fetched."""
    modules: dict[str, Component] = {}
    for pin in json.loads((ROOT / "Package.resolved").read_text())["pins"]:
        state, location = pin["state"], pin["location"].removesuffix(".git")
        place = re.sub(r"^https://", "", location)
        component = Component(
            pin["identity"], state["version"], of_swift(f"{pin['identity']}, a Swift package"), "Organization: The Swift project",
            f"git+{location}@{state['revision']}", f"pkg:swift/{place}@{state['version']}",
        )  # fmt: skip
        sources = ROOT / ".build/checkouts" / location.rsplit("/", 1)[1] / "Sources"
        if not sources.is_dir():
            fail(f"{sources} is missing: run make release")
        modules |= {folder.name: component for folder in sources.iterdir()}
    return modules


@cache
def inputs(product: str) -> list[str]:
    """The files of which the linker takes something for a product; kept beside it, since linking takes seconds."""
    with (RELEASE / f"{product}.inputs.lock").open("w") as lock:
        # Packages are made beside each other, for several tests.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return linked_again(product)


def linked_again(product: str) -> list[str]:
    program = RELEASE / product
    kept = RELEASE / f"{product}.inputs"
    # packaging/link/runtime has asked the linker already.
    if kept.exists() and (product == "libtorpor-swift.so" or kept.stat().st_mtime > program.stat().st_mtime):
        return kept.read_text().splitlines()
    name = re.sub(r"^lib(.*)\.so$", r"\1", product)
    plan = (ROOT / ".build/release.yaml").read_text()
    rule = rf'^  "C\.{re.escape(name)}-[^-"]+-[^-"]+-linux-gnu-release\.(?:exe|dylib)":\n(?:    .*\n)*?    args: (\[.*\])$'
    match = re.search(rule, plan, re.MULTILINE)
    if match is None:
        fail(f"SwiftPM's plan has no rule for {name}: .build/release.yaml")
    command = json.loads(match[1])
    with tempfile.TemporaryDirectory() as work:
        command[command.index("-o") + 1] = f"{work}/{product}"
        done = subprocess.run(command + ["-Xlinker", "--trace"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        fail(f"{name} cannot be linked again:\n{done.stderr}")
    # An object of an archive is ARCHIVE(OBJECT).
    found = {re.sub(r"\(.*\)$", "", line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("/")}
    draft = kept.with_suffix(".draft")
    draft.write_text("".join(f"{os.path.normpath(line)}\n" for line in sorted(found)))
    draft.replace(kept)
    return kept.read_text().splitlines()


@cache
def components(product: str) -> list[Component]:
    found: list[Component] = []
    files, seen = [], []
    for file in inputs(product):
        if Path(file).suffix not in (".a", ".o"):
            continue  # A shared library is named by Depends, a linker script names others.
        if built := re.search(r"/\.build/.*/(\w+)\.build/.*\.o$", file):
            # Torpor's own modules are not among them.
            found += [component for module, component in checkouts().items() if module == built[1]]
            seen += headers(Path(file))
        elif "/lib/swift" in file:
            found.append(of_toolchain(file))
        else:
            files.append(file)
    packages = debian_packages(files + seen)
    for file in files:
        if file not in packages:
            fail(f"{file} is linked, and is in no package of Debian")
        found.append(of_debian(packages[file]))
    found += [of_debian(packages[file]) for file in seen if packages.get(file, "").split(":")[0] in HEADERS]
    return list({component.id: component for component in sorted(found, key=lambda one: one.id)}.values())


def headers(built: Path) -> list[str]:
    """The headers of which an object in C++ was made."""
    rules = built.with_suffix(".d")
    if not built.name.endswith(".cpp.o") or not rules.exists():
        return []
    words = rules.read_text().replace("\\\n", " ").split()
    return sorted({path for word in words if (path := os.path.normpath(word)).startswith("/usr/include/")})

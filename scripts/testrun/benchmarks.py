# SPDX-License-Identifier: Apache-2.0
"""Whether the benchmarks still compile against the modules: checked without a build, which would take minutes."""

import glob
import os
import subprocess


def check(root: str, build: str) -> str:
    """The compiler's errors; empty if there are none."""
    maps = glob.glob(f"{build}/debug/*.build/module.modulemap")
    folders = [os.path.dirname(path) for path in glob.glob(f"{root}/Sources/*/module.modulemap")]
    folders += glob.glob(f"{root}/Sources/*/include") + glob.glob(f"{build}/checkouts/swift-system/Sources/*/include")
    options = ["-swift-version", "6", "-warnings-as-errors", "-I", f"{build}/debug/Modules"]
    for path in maps:
        options += ["-Xcc", f"-fmodule-map-file={path}"]
    for folder in folders:
        options += ["-I", folder]
    found = ""
    for target in sorted(os.listdir(f"{root}/Benchmarks/Sources")):
        sources = glob.glob(f"{root}/Benchmarks/Sources/{target}/**/*.swift", recursive=True)
        if not sources:
            continue
        run = subprocess.run(
            ["swiftc", "-typecheck", *options, *sorted(sources)], capture_output=True, text=True, check=False
        )
        if run.returncode != 0:
            found += run.stderr
    return found

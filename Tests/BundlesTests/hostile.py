#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes archives that no bundle is, each from a good one: hostile.py GOOD FOLDER

Prints a line for each: the archive's name, a tab, and a part of the sentence with which it is refused.
"""

import io
import os
import sys
import tarfile

good, folder = sys.argv[1:]
with tarfile.open(good) as archive:
    members = [(m, archive.extractfile(m).read() if m.isfile() else b"") for m in archive.getmembers()]
manifest = members[0][1]
# A file with content, and the members before and after it.
place = next(index for index, (member, content) in enumerate(members) if index > 1 and content)
file, content = members[place]
before, after = members[:place], members[place + 1 :]


def info(name, content=b"", kind=tarfile.REGTYPE, **more):
    member = tarfile.TarInfo(name)
    member.type, member.size, member.mode = kind, len(content), 0o644
    for key, value in more.items():
        setattr(member, key, value)
    return member, content


def write(name, expected, entries, form=tarfile.PAX_FORMAT, tail=None):
    path = os.path.join(folder, name)
    with tarfile.open(path, "w", format=form) as archive:
        for member, content in entries:
            archive.addfile(member, io.BytesIO(content) if content else None)
    if tail:
        with open(path, "ab") as file:
            file.write(tail)
    print(f"{name}\t{expected}")


def extra(name, expected, *more, **options):
    write(name, expected, members + list(more), **options)


def files(*lines):
    """The good archive with other lines in [files]."""
    head = manifest.split(b"[files]\n")[0]
    return info("manifest.toml", head + b"[files]\n" + b"".join(line + b"\n" for line in lines))


def line(name, content=b"", mode="0644", size=None):
    zero = "0" * 64
    return f'"{name}" = {{ mode = "{mode}", size = {len(content) if size is None else size}, verity = "{zero}" }}'.encode()


def link(name, target):
    return f'"{name}" = {{ link = "{target}" }}'.encode()


def listed(name, expected, *lines):
    write(name, expected, [files(*lines)])


# Names in the archive.
extra("absolute", "absolute", info("/etc/passwd", b"x"))
extra("parent", "..", info("../x", b"x"))
extra("parent-inside", "..", info("bin/../../x", b"x"))
extra("parent-alone", "..", info("..", b"x"))
extra("dot", ". or ..", info("./bin", b"x"))
extra("empty-part", "empty part", info("bin//x", b"x"))
extra("control", "control", info("bin/a\nb", b"x"))
extra("escape", "control", info("bin/\x1b[2J", b"x"))
extra("deep", "deep", info("/".join(["d"] * 70), b"x"))
extra("long", "longer", info("n" * 300, b"x"))
# Twice, or nearly.
extra("duplicate", "twice", members[2])
extra("duplicate-manifest", "twice", info("manifest.toml", manifest))
extra("case", "case", info("BIN/app", b"x"))
# Kinds.
extra("hard-link", "hard link", info("bin/hard", kind=tarfile.LNKTYPE, linkname="bin/app"))
extra("character-device", "device", info("null", kind=tarfile.CHRTYPE, devmajor=1, devminor=3))
extra("block-device", "device", info("disk", kind=tarfile.BLKTYPE, devmajor=8))
extra("fifo", "FIFO", info("pipe", kind=tarfile.FIFOTYPE))
# Its path ends with a slash, as tar writes it.
extra("folder", "empty part", info("bin", kind=tarfile.DIRTYPE, mode=0o755))
extra("contiguous", "kind", info("odd", b"x", kind=tarfile.CONTTYPE))
extra("sparse", "", info("sparse", b"x", kind=tarfile.GNUTYPE_SPARSE), form=tarfile.GNU_FORMAT)
extra("setuid", "setuid", info("bin/su", b"x", mode=0o4755))
extra("setgid", "setuid", info("bin/sg", b"x", mode=0o2755))
extra("sticky", "setuid", info("bin/st", b"x", mode=0o1755))
# Links out of it, in the archive and in the manifest.
extra("link-not-listed", "not in the manifest", info("out", kind=tarfile.SYMTYPE, linkname="/etc/passwd"))
listed("link-absolute", "leaves", link("out", "/etc/passwd"))
listed("link-parent", "leaves", link("out", "../x"))
listed("link-parent-deep", "leaves", line("a/b/c"), link("a/b/out", "../../../x"))
listed("link-over-link", "goes over", line("a/b/c"), link("a/b/up", "../.."), link("out", "a/b/up/../x"))
listed("link-to-nothing", "nothing", link("out", "x"))
listed("file-below-link", "file and a folder", link("a", "b"), line("a/x"), line("b"))
# Manifest and archive differ.
extra("not-listed", "not in the manifest", info("more", b"x"))
write("missing", "not in the archive", members[:-1])
other = b"y" * len(content)
write("other-content", "not what was signed", before + [info(file.name, other, mode=file.mode)] + after)
write("other-size", "bytes", before + [info(file.name, b"y", mode=file.mode)] + after)
write("other-mode", "mode", before + [info(file.name, content, mode=0o600)] + after)
write("other-kind", "kind", before + [info(file.name, kind=tarfile.SYMTYPE, linkname="x")] + after)
# Sizes.
listed("huge", "GiB", line("a", size=11 << 30))
listed("huge-sum", "GiB", line("a", size=6 << 30), line("b", size=6 << 30))
# The shortest lines, so that the manifest stays small: 100,000 links are read in a second.
listed("many", "more than 100000", *[link(f"f{number:06}", "a") for number in range(100_001)])
listed("listed-case", "case", line("A"), line("a"))
listed("listed-twice", "twice", line("a"), line("a"))
listed("listed-control", "not one that", b'"a\\u0001" = { link = "b" }')
listed("listed-setuid", "setuid", line("a", mode="4755"))
listed("listed-writable", "written to by other", line("a", mode="0666"))
listed("listed-manifest", "stands in the manifest", line("manifest.toml"))
listed("unsorted", "out of order", line("b"), line("a"))
write("no-files", "no section", [info("manifest.toml", b'name = "x"\n')])
# The archive itself.
write("empty", "not manifest.toml", [])
write("other-first", "not manifest.toml", members[2:])
write("cut", "", members)
with open(os.path.join(folder, "cut"), "r+b") as file:
    file.truncate(2000)
extra("after-end", "after its end", tail=b"x" * 512)
extra("gnu-long-name", "", info("l" * 200, b"x"), form=tarfile.GNU_FORMAT)
with open(os.path.join(folder, "text"), "w") as file:
    file.write("no archive " * 100)
print("text\tnot a bundle")
with open(os.path.join(folder, "nothing"), "w") as file:
    pass
print("nothing\tcut short")

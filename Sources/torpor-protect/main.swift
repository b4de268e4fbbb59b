// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import Varlink
import WireText

// Opens and closes the folders of apps with protected data. torpord starts it for each such step: a process of its own,
// since apps decide what is in those folders and how long a look at it takes.
//
// torpor-protect open|close ROOT [APP none|permissions USER GROUP]...
//   Prints a line of JSON for each folder (FolderStanding). Exit status 0, or 1 with a sentence on standard error, or 2
//   for wrong arguments.

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain(sentence)
    ThisProcess.exit(code)
}

let words = CommandLine.arguments.dropFirst()
guard words.count > 2, let step = words.first, ["open", "close"].contains(step),
    let folders = ProtectedFolder.folders(words.dropFirst(2)), let path = words.dropFirst().first, path.hasPrefix("/")
else {
    fail("usage: torpor-protect open|close ROOT [APP none|permissions USER GROUP]...", 2)
}

do throws(Errno) {
    let root = try DoorRoot(path)
    let doors = folders.map { Door($0, root) }
    let standings = step == "open" ? doors.map { $0.open() } : Door.close(doors, root)
    let lines = standings.map { $0.json.serialised() + [UInt8(ascii: "\n")] }
    try Descriptor.writeAll(1, Array(lines.joined()))
} catch {
    fail("\(path) cannot be used: \(error)", 1)
}

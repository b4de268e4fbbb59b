// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import Varlink
import WireText

// Opens and closes the folders of apps with protected data. torpord starts it for each such step. It is a process of
// its own because apps decide what is in those folders, and so how long it takes to inspect them.
//
// torpor-protect open|close ROOT [APP none|permissions USER GROUP]...
//   Prints lines of JSON (ProtectionAnswer), each at once, so that the lines count even if torpor-protect is killed.
//   Exit status 0, or 1 with a sentence on standard error, or 2 for wrong arguments.
// torpor-protect sweep ROOT [APP none|permissions USER GROUP]...
//   Closes the folders of all apps but these.
// torpor-protect move ROOT APP encrypt|decrypt
//   Moves the files of an app's folder into an encrypted one, or out of it; ‘torpor protect move’ starts it. Prints one
//   line of JSON with what was done.

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain(sentence)
    ThisProcess.exit(code)
}

@Sendable func say(_ json: JSON) { try? Descriptor.writeAll(1, Array(json.serialised()) + [UInt8(ascii: "\n")]) }

let words = CommandLine.arguments.dropFirst()
if words.first == "move" {
    let words = Array(words.dropFirst())
    guard words.count == 3, words[0].hasPrefix("/"), ["encrypt", "decrypt"].contains(words[2]) else {
        fail("usage: torpor-protect move ROOT APP encrypt|decrypt", 2)
    }
    ThisProcess.raiseDescriptorLimit()
    do {
        let root = try DoorRoot(words[0], mayGoOn: false, mayKill: false)
        let door = Door(ProtectedFolder(app: words[1], mayFallBack: true, user: "", group: ""), root)
        say(try Move(door: door, root: root, encrypts: words[2] == "encrypt").run())
        ThisProcess.exit(0)
    } catch {
        fail((error as? Move.Failure)?.sentence ?? "the files of \(words[1]) cannot be moved: \(error)", 1)
    }
}
guard words.count > 1, let step = words.first, ["open", "close", "sweep"].contains(step),
    let folders = ProtectedFolder.folders(words.dropFirst(2)), let path = words.dropFirst().first, path.hasPrefix("/")
else {
    fail("usage: torpor-protect open|close|sweep ROOT [APP none|permissions USER GROUP]...", 2)
}

ThisProcess.raiseDescriptorLimit()
do throws(Errno) {
    let root = try DoorRoot(path, mayGoOn: step != "open")
    let doors = folders.map { Door($0, root) }
    var isWhole = true
    switch step {
    case "open": for door in doors { say(door.open().json) }
    case "close": isWhole = Door.close(doors, root, print: say)
    default:
        let others = root.others(than: Set(folders.map(\.app)))
            .map { Door(ProtectedFolder(app: $0, mayFallBack: true, user: "", group: ""), root) }
        if let problem = Door.sweep(others, root) { fail(problem, 1) }
    }
    // Print nothing after an incomplete search: another thread may be printing a line.
    if isWhole { say(ProtectionAnswer.end) }
    ThisProcess.exit(0)
} catch {
    fail("\(path) cannot be used: \(error)", 1)
}

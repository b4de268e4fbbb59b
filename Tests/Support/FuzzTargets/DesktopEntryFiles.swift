// SPDX-License-Identifier: Apache-2.0

import DesktopEntries
import TorporAPI
import WireText

/// Desktop entries that others may have written: a sync reads whose they are, and an entry that it writes for the same app
/// is of the same app.
enum DesktopEntryFiles: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let owner = DesktopEntry.owner(in: String(wire: bytes)) else { return }
        let entry = DesktopEntry(DesktopApp(name: owner.app), DesktopEntry.Command(), socket: owner.socket, types: [])
        let text = entry.text
        try expect(text.utf8.count { $0 == UInt8(ascii: "\n") } == 18, "a value has become more than one line")
        guard let again = DesktopEntry.owner(in: text) else { throw Finding("its own entry is of no app") }
        try expect(again.app.utf8.elementsEqual(owner.app.utf8), "it is of another app")
        try expect(again.socket.utf8.elementsEqual(owner.socket.utf8), "it is of another supervisor")
    }
}

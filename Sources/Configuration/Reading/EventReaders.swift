// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// Readers of keys about the events that wake an app.
enum EventReaders {
    /// Reads `background_modes`.
    static func modes(_ context: Context, _ node: Node) -> [BackgroundMode]? {
        let modes: [BackgroundMode]? = Read.elements(context, node, of: "strings") { Read.choice($0, $1) }
        return modes.map { Set($0).sorted { $0.rawValue < $1.rawValue } }
    }

    /// Reads `wake_on_connect`: true, false, or one of the values of `wake`.
    static func wakeOnConnect(_ context: Context, _ node: Node) -> WakeManner? {
        if case .boolean(let flag) = node.value { return flag ? .background : WakeManner.none }
        guard case .string = node.value else {
            return context.expected("true, false, \"background\" or \"foreground\"", node)
        }
        return Read.choice(context, node)
    }
}

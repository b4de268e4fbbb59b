// SPDX-License-Identifier: Apache-2.0

/// The command that `torpor app delegate --on MESSAGE=COMMAND` runs for a message.
package struct DelegateHook {
    /// The names of all messages.
    package static let messages = DelegateMessage.allCases.map(\.rawValue)

    /// The name of the message; `*` for the messages that have no command of their own.
    package let message: String
    package let command: String

    /// Nil if the text is not MESSAGE=COMMAND.
    package init?(_ text: String) {
        message = String(text.prefix { $0 != "=" })
        command = String(text.dropFirst(message.count + 1))
        guard text.contains("="), !text.hasSuffix("=") || message.utf8.count + 1 < text.utf8.count else { return nil }
    }

    /// Whether there is such a message.
    package var isKnown: Bool { message == "*" || Self.messages.contains(message) }
}

// SPDX-License-Identifier: Apache-2.0

import Notify

/// A datagram of an app.
enum Notifications: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        let message = NotifyMessage(parsing: bytes)
        try expect(message.fields.count <= NotifyMessage.maximumFields, "it has \(message.fields.count) fields")
        try expect(message.warnings.count <= 17, "it has \(message.warnings.count) warnings")
        for warning in message.warnings {
            try expect(warning.utf8.count < 2_048, "a warning has \(warning.utf8.count) bytes")
            let isPlain = warning.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
            try expect(isPlain, "a warning has a control character")
        }
        var written: [UInt8] = []
        for field in message.fields {
            let (key, value) = line(field)
            try expect(value.utf8.count <= NotifyMessage.maximumText, "\(key) has \(value.utf8.count) bytes")
            written += Array("\(key)=\(value)\n".utf8)
        }
        // Of a long one the end may be cut.
        guard written.count <= NotifyMessage.maximumLength else { return }
        let again = NotifyMessage(parsing: written)
        try expect(again.fields == message.fields, "its fields are others when they are written and read again")
    }

    private static func line(_ field: NotifyField) -> (key: String, value: String) {
        switch field {
        case .ready: ("READY", "1")
        case .reloading: ("RELOADING", "1")
        case .monotonicUsec(let time): ("MONOTONIC_USEC", "\(time)")
        case .stopping: ("STOPPING", "1")
        case .status(let text): ("STATUS", text)
        case .errno(let number): ("ERRNO", "\(number)")
        case .busError(let text): ("BUSERROR", text)
        case .exitStatus(let number): ("EXIT_STATUS", "\(number)")
        case .mainPID(let number): ("MAINPID", "\(number)")
        case .watchdogPing: ("WATCHDOG", "1")
        case .watchdogTrigger: ("WATCHDOG", "trigger")
        case .watchdogUsec(let time): ("WATCHDOG_USEC", "\(time)")
        case .extendTimeoutUsec(let time): ("EXTEND_TIMEOUT_USEC", "\(time)")
        case .taskBegin(let name): ("X_TORPOR_TASK_BEGIN", name)
        case .taskEnd(let name): ("X_TORPOR_TASK_END", name)
        case .showsNew: ("X_TORPOR_SNAPSHOT", "1")
        case .containerRuns(let number, let digest):
            ("X_TORPOR_CONTAINER", (number.map { "\($0)" } ?? "") + (digest.map { " \($0)" } ?? ""))
        case .done(let name): ("X_TORPOR_DONE", name)
        case .fdStore: ("FDSTORE", "1")
        case .fdStoreRemove: ("FDSTOREREMOVE", "1")
        case .fdName(let name): ("FDNAME", name)
        case .fdPoll(let polls): ("FDPOLL", polls ? "1" : "0")
        case .barrier: ("BARRIER", "1")
        case .unknown(let key, let value): (key, value)
        }
    }
}

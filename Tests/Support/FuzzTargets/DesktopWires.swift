// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import Varlink

/// What torpor-desktop says and is told, and what a window manager, an X server and pw-dump say to it. The first byte says
/// which.
enum DesktopWires: FuzzedParser {
    static var nanosecondsPerByte: Int { 8_000 }

    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let kind = bytes.first else { return }
        let rest = Array(bytes.dropFirst())
        switch kind & 3 {
        case 0: try messages(rest)
        case 1: try windowManager(rest)
        case 2: try screen(rest)
        default:
            _ = XCookie(display: 0, in: rest)
            try sound(rest)
        }
    }

    private static func sound(_ bytes: [UInt8]) throws(Finding) {
        var (whole, cut) = (PipeWireDump(), PipeWireDump())
        var (objects, others): ([PipeWireDump.Object], [PipeWireDump.Object]) = ([], [])
        var graph = PipeWireGraph()
        let middle = bytes.count / 2
        let isValid = (try? whole.read(bytes) { objects.append($0) }) != nil
        let isValidCut =
            (try? cut.read(bytes[..<middle]) { others.append($0) }) != nil
            && (try? cut.read(bytes[middle...]) { others.append($0) }) != nil
        try expect(objects == others && isValid == isValidCut, "it differs when it is cut")
        for object in objects { graph.take(object) }
        try expect(graph.streams.allSatisfy { $0.pid > 0 }, "no process has such a pid")
    }

    private static func messages(_ bytes: [UInt8]) throws(Finding) {
        guard let json = try? JSON.parse(bytes) else { return }
        if let report = try? DesktopReport(json: json) {
            try expect((try? DesktopReport(json: report.json)) == report, "it is another report when it is said again")
        }
        if let command = try? DesktopCommand(json: json) {
            try expect(
                (try? DesktopCommand(json: command.json)) == command,
                "it is another command when it is said again"
            )
        }
        if case .process(let pid) = FocusedWindow(tree: json) { try expect(pid > 0, "no process has the pid \(pid)") }
        _ = FocusEvent(.window, json)
        _ = FocusEvent(.workspace, json)
    }

    private static func windowManager(_ bytes: [UInt8]) throws(Finding) {
        var (whole, cut) = (WindowManagerMessage.Framer(), WindowManagerMessage.Framer())
        let middle = bytes.count / 2
        whole.append(bytes)
        cut.append(bytes[..<middle])
        var isWhole = false
        while true {
            guard let message = try? whole.next() else { break }
            var other = try? cut.next()
            if other == nil, !isWhole {
                cut.append(bytes[middle...])
                isWhole = true
                other = try? cut.next()
            }
            try expect(
                other?.payload == message.payload && other?.kind == message.kind,
                "it is another message when it is cut"
            )
        }
    }

    private static func screen(_ bytes: [UInt8]) throws(Finding) {
        var (whole, cut) = (XConversation(), XConversation())
        for window: UInt32 in 1...3 { _ = (whole.ask(window), cut.ask(window)) }
        guard let all = try? whole.receive(bytes) else { return }
        let middle = bytes.count / 2
        guard let one = try? cut.receive(bytes[..<middle]), let two = try? cut.receive(bytes[middle...]) else {
            throw Finding("it is invalid when it is cut")
        }
        try expect(
            all.answers == one.answers + two.answers && all.send == one.send + two.send,
            "it differs when it is cut"
        )
        try expect(all.answers.count <= 3, "there are more answers than questions")
    }
}

// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import Testing
import Varlink

@Suite struct MarkupTests {
    @Test(arguments: [
        ("", ""), ("plain", "plain"), ("a < b & c > d", "a &lt; b &amp; c &gt; d"), ("&amp;", "&amp;amp;"),
        ("<a href=\"x\">'y'</a>", "&lt;a href=&quot;x&quot;&gt;&apos;y&apos;&lt;/a&gt;"), ("é✓\n", "é✓\n"),
    ])
    func `text stays what it is`(text: String, markup: String) {
        #expect(Markup.escape(text) == markup)
    }

    @Test func `a path is a URL`() {
        #expect(Markup.fileURL("/usr/share/icons/a-b_c.png") == "file:///usr/share/icons/a-b_c.png")
        #expect(Markup.fileURL("/a b/%ü?#") == "file:///a%20b/%25%C3%BC%3F%23")
    }

    @Test func `an entry is a file name`() {
        #expect(Markup.isEntry("io.torpor.Notes-2_x"))
        for name in ["", "a/b", "a b", "ä", "a\n", String(repeating: "a", count: 256)] {
            #expect(!Markup.isEntry(name))
        }
    }

    @Test func `an action with the name of the click is left out`() {
        var alert = DesktopAlert(id: 1, app: "a", title: "t")
        alert.actions = [.init(id: "default", label: "x"), .init(id: "b", label: "y")]
        let content = NotificationContent(
            alert,
            for: DesktopServer(name: "", capabilities: ["actions"]),
            isSilent: false
        )
        #expect(content.actions == ["default", "Open", "b", "y"])
        #expect(content.hints == ["urgency": .byte(1), "suppress-sound": .flag(true)])
    }
}

@Suite struct XTests {
    private func long(_ numbers: UInt32...) -> [UInt8] {
        numbers.flatMap { number in withUnsafeBytes(of: number) { Array($0) } }
    }

    private func reply(_ head: [UInt8], _ body: [UInt8] = []) -> [UInt8] {
        let start = head.prefix(2) + [0, 0] + long(UInt32(body.count / 4)) + head.dropFirst(2)
        return start + [UInt8](repeating: 0, count: 32 - start.count) + body
    }

    /// What an X server says until it can be asked.
    private var opening: [UInt8] {
        let setup: [UInt8] = [1, 0, 11, 0, 0, 0] + withUnsafeBytes(of: UInt16(2)) { Array($0) } + long(7, 7)
        return setup + reply([1, 0, 1, 140])
            + reply([1, 0] + withUnsafeBytes(of: (UInt16(1), UInt16(2))) { Array($0) })
    }

    @Test func `the process of a window is asked for, however the bytes are cut`() throws {
        let answers =
            reply([1, 0] + long(1), long(5, 2, 4, 4711)) + reply([1, 0] + long(0))
            + [0] + [UInt8](repeating: 3, count: 31) + reply([1, 0] + long(2), long(5, 1, 4, 9) + long(5, 2, 4, 12))
        // An event in between.
        let bytes = opening + [22] + [UInt8](repeating: 0, count: 31) + answers
        for step in [1, 7, bytes.count] {
            var conversation = XConversation()
            #expect(XConversation().greeting(nil).count == 12)
            var (found, sent): ([XConversation.Answer], [UInt8]) = ([], [])
            for window in [1, 2, 3, 4] { sent += conversation.ask(UInt32(window)) }
            #expect(sent.isEmpty, "not before it is ready")
            for start in stride(from: 0, to: bytes.count, by: step) {
                let (answers, next) = try conversation.receive(bytes[start..<min(start + step, bytes.count)])
                found += answers
                sent += next
            }
            #expect(found.map(\.window) == [1, 2, 3, 4])
            #expect(found.map(\.pid) == [4711, nil, nil, 12])
            #expect(sent.count == 20 + 8 + 4 * 16)
        }
    }

    @Test func `what is no X server is an error`() {
        var conversation = XConversation()
        #expect(throws: XConversation.Invalid.self) { try conversation.receive(Array("HTTP/1.1 400 Bad".utf8)) }
        for bytes in [[UInt8](repeating: 0, count: 8), opening.dropLast(64) + reply([1, 0, 0, 0])] {
            var conversation = XConversation()
            #expect(throws: XConversation.Invalid.self) { try conversation.receive(bytes) }
        }
        var unasked = XConversation()
        #expect(throws: XConversation.Invalid.self) { try unasked.receive(opening + reply([1, 0])) }
        var huge = XConversation()
        #expect(throws: XConversation.Invalid.self) {
            try huge.receive(opening + [1, 0, 0, 0, 255, 255, 255, 255] + opening)
        }
    }

    @Test func `a cookie is found for its display`() {
        func entry(_ family: UInt16, _ texts: [String]) -> [UInt8] {
            var bytes = [UInt8(family >> 8), UInt8(family & 255)]
            for text in texts { bytes += [0, UInt8(text.utf8.count)] + text.utf8 }
            return bytes
        }
        let magic = "MIT-MAGIC-COOKIE-1"
        let file =
            entry(0, ["1234", "1", magic, "net"]) + entry(256, ["host", "0", magic, "zero"])
            + entry(256, ["host", "1", "XDM-AUTHORIZATION-1", "xdm"]) + entry(256, ["host", "1", magic, "one"])
        #expect(XCookie(display: 1, in: file) == XCookie(display: 1, in: entry(65535, ["", "", magic, "one"])))
        #expect(XCookie(display: 2, in: file) == nil)
        for count in 0..<file.count { _ = XCookie(display: 1, in: Array(file.prefix(count))) }
        #expect(XCookie.display(":1.0") == 1 && XCookie.display("unix:12") == 12 && XCookie.display(":0") == 0)
        for text in ["", "host:1", ":", ":x", ":-1", ":99999", "1"] { #expect(XCookie.display(text) == nil) }
    }
}

@Suite struct WindowManagerTests {
    private func json(_ text: String) throws -> JSON { try JSON.parse(Array(text.utf8)) }

    @Test func `messages are found however they are cut`() throws {
        let bytes =
            WindowManagerMessage.bytes(.window, #"{"a":1}"#) + WindowManagerMessage.bytes(.tree)
            + Array("i3-ipc".utf8) + [1, 0, 0, 0, 99, 0, 0, 0, 0x78]
        #if _endian(little)
        for step in 1...bytes.count {
            var framer = WindowManagerMessage.Framer()
            var found: [(WindowManagerMessage.Kind?, [UInt8])] = []
            for start in stride(from: 0, to: bytes.count, by: step) {
                framer.append(bytes[start..<min(start + step, bytes.count)])
                while let message = try framer.next() { found.append(message) }
            }
            #expect(found.map(\.0) == [.window, .tree, nil])
            #expect(found.map(\.1) == [Array(#"{"a":1}"#.utf8), [], [0x78]])
        }
        #endif
    }

    @Test(arguments: [Array("i3-iPc".utf8), Array("H".utf8), Array("i3-ipc".utf8) + [255, 255, 255, 255, 0, 0, 0, 0]])
    func `anything else is an error, as soon as it can be`(bytes: [UInt8]) {
        var framer = WindowManagerMessage.Framer()
        framer.append(bytes)
        #expect(throws: WindowManagerMessage.Framer.Invalid.self) { try framer.next() }
    }

    @Test(arguments: [
        (#"{"focused":false,"nodes":[{"focused":true,"pid":7}]}"#, FocusedWindow.process(7)),
        (#"{"nodes":[{"nodes":[{"pid":1}]},{"floating_nodes":[{"pid":8,"focused":true}]}]}"#, .process(8)),
        (#"{"nodes":[{"focused":true,"window":77,"nodes":[]}]}"#, .window(77)),
        // A workspace, empty and not.
        (#"{"nodes":[{"focused":true,"nodes":[]}]}"#, .none),
        (#"{"nodes":[{"focused":true,"focus":[2],"nodes":[{"id":1,"pid":5},{"id":2,"pid":6}]}]}"#, .process(6)),
        ("{}", .none), ("[]", .none), (#"{"nodes":5}"#, .none), (#"{"focused":true,"pid":-1}"#, .none),
        (#"{"focused":true,"pid":4294967296}"#, .none),
    ])
    func `the focus is found in the tree`(text: String, window: FocusedWindow) throws {
        #expect(FocusedWindow(tree: try json(text)) == window)
    }

    @Test func `the windows are listed in the order in which they had the focus`() throws {
        let text = #"""
            {"id":1,"focus":[3,2],"nodes":[
              {"id":2,"nodes":[{"id":20,"pid":5}]},
              {"id":3,"focus":[32,31],"nodes":[{"id":31,"window":77}],"floating_nodes":[{"id":32,"pid":6},{"id":33,"pid":7}]},
              {"id":4,"nodes":[]}, {"pid":9}, 5
            ]}
            """#
        let found = ListedWindow.all(in: try json(text))
        #expect(found.map(\.container) == [32, 31, 33, 20])
        #expect(found.map(\.window) == [.process(6), .window(77), .process(7), .process(5)])
        let many = JSON.array((1...1_000).map { ["id": .int($0), "pid": 1] })
        #expect(ListedWindow.all(in: ["nodes": many]).count == 256)
        for text in ["[]", #"{"nodes":1}"#] { #expect(try ListedWindow.all(in: json(text)).isEmpty) }
    }

    @Test(arguments: [
        (
            WindowManagerMessage.Kind.window, #"{"change":"focus","container":{"pid":7}}"#,
            FocusEvent.focused(.process(7))
        ),
        (.window, #"{"change":"focus"}"#, .unsure), (.window, #"{"change":"close","container":{"pid":7}}"#, .unsure),
        (.window, #"{"change":"title","container":{"pid":7}}"#, .same), (.workspace, #"{"change":"focus"}"#, .unsure),
        (.workspace, #"{"change":"urgent"}"#, .same), (.tree, "{}", .same), (.window, "[]", .same),
    ])
    func `events say whether the focus has changed`(
        kind: WindowManagerMessage.Kind,
        text: String,
        event: FocusEvent
    ) throws {
        #expect(FocusEvent(kind, try json(text)) == event)
    }

    @Test func `only sockets of this user are tried`() {
        #expect(FocusSocket.isSway("sway-ipc.1000.123.sock", user: 1000))
        for name in [
            "sway-ipc.1001.123.sock", "sway-ipc.1000.x.sock", "sway-ipc.1000..sock", "sway-ipc.1000.1.sock.x",
            "sway-ipc.1000.1", "wayland-1",
        ] { #expect(!FocusSocket.isSway(name, user: 1000)) }
        #expect(FocusSocket.isI3("ipc-socket.99"))
        #expect(!FocusSocket.isI3("ipc-socket.") && !FocusSocket.isI3("ipc-socket.1.2"))
    }
}

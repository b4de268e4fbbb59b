// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import Testing

@Suite struct PipeWireTests {
    /// In the words of pw-dump 0.3.65: a player of silence, which is linked in the second array and has gone in the third.
    private static let recorded = #"""
        [
          {
            "id": 0,
            "type": "PipeWire:Interface:Core",
            "version": 3,
            "permissions": [ "r", "w", "x", "m" ],
            "info": { "cookie": 164759538, "name": "pipewire-0", "props": { "config.name": "pipewire.conf" } }
          },
          {
            "id": 41,
            "type": "PipeWire:Interface:Client",
            "version": 3,
            "permissions": [ "r", "w", "x", "m" ],
            "info": {
              "change-mask": [ "props" ],
              "props": {
                "application.name": "pw-cat",
                "application.process.binary": "pw-cat",
                "application.process.id": 30363,
                "pipewire.sec.pid": 30364,
                "window.x11.display": ""
              }
            }
          },
          {
            "id": 42,
            "type": "PipeWire:Interface:Node",
            "version": 3,
            "permissions": [ "r", "w", "x", "m" ],
            "info": {
              "max-input-ports": 0,
              "change-mask": [ "input-ports", "output-ports", "state", "props", "params" ],
              "state": "suspended",
              "error": null,
              "props": {
                "client.id": 41,
                "media.class": "Stream/Output/Audio",
                "media.filename": "\"s\\.wav\", }{",
                "media.role": "Music",
                "node.rate": "1/48000",
                "stream.is-live": true
              },
              "params": {
                "PropInfo": [
                  { "id": "volume", "type": { "default": 1.000000, "min": -0.5e+3 }, "state": "running" }
                ],
                "Format": [
                ]
              }
            }
          }
        ]
        [
          {
            "id": 42,
            "type": "PipeWire:Interface:Node",
            "info": {
              "change-mask": [ "state" ],
              "state": "running"
            }
          }
        ]
        [
          {
            "id": 42,
            "info": null
          }
        ]

        """#

    /// What plays after each array.
    private func streams(_ text: String, cutAt places: [Int] = []) throws -> [[DesktopSound]] {
        let bytes = Array(text.utf8)
        var (dump, graph) = (PipeWireDump(), PipeWireGraph())
        var all: [[DesktopSound]] = []
        var start = 0
        for end in places + [bytes.count] {
            for byte in bytes[start..<end] {
                let wasComplete = dump.isComplete
                try dump.read([byte]) { graph.take($0) }
                if dump.isComplete, !wasComplete || byte == UInt8(ascii: "]") { all.append(graph.streams) }
            }
            start = end
        }
        return all
    }

    private func node(_ properties: String, state: String = "running", id: Int = 5) -> String {
        """
        [{"id":\(id),"type":"PipeWire:Interface:Node","info":{"state":"\(state)","props":{\(properties)}}}]
        """
    }

    @Test func `a stream counts while it runs, for the process that PipeWire names`() throws {
        let player = DesktopSound(id: 42, pid: 30364, role: "Music")
        #expect(try streams(Self.recorded) == [[], [player], []])
    }

    @Test func `bytes may be cut anywhere`() throws {
        let bytes = Array(Self.recorded.utf8)
        var whole: [PipeWireDump.Object] = []
        var dump = PipeWireDump()
        try dump.read(bytes) { whole.append($0) }
        #expect(whole.count == 5 && whole[4].isGone)
        for middle in stride(from: 0, to: bytes.count, by: 7) {
            var parts: [PipeWireDump.Object] = []
            var other = PipeWireDump()
            try other.read(bytes[..<middle]) { parts.append($0) }
            try other.read(bytes[middle...]) { parts.append($0) }
            #expect(parts == whole)
        }
    }

    @Test func `recording counts, what is no stream of sound does not`() throws {
        let pid = "\"application.process.id\":9"
        let cases: [(String, String, [DesktopSound])] = [
            (
                "\"media.class\":\"Stream/Input/Audio\",\(pid)", "running",
                [DesktopSound(id: 5, pid: 9, isRecording: true)]
            ),
            ("\"media.class\":\"Stream/Input/Audio\",\(pid)", "idle", []),
            ("\"media.class\":\"Stream/Input/Audio\",\"stream.monitor\":\"true\",\(pid)", "running", []),
            ("\"media.class\":\"Stream/Output/Video\",\(pid)", "running", []),
            ("\"media.class\":\"Audio/Sink\",\(pid)", "running", []),
            ("\"media.class\":\"Stream/Output/Audio\"", "running", []),
            ("\"media.class\":\"Stream/Output/Audio\",\"application.process.id\":-3", "running", []),
            ("\"media.class\":\"Stream/Output/Audio\",\"application.process.id\":\"4294967297\"", "running", []),
            (
                "\"media.class\":\"Stream/Output/Audio\",\"application.process.id\":\"12\"", "running",
                [DesktopSound(id: 5, pid: 12)]
            ),
        ]
        for (properties, state, expected) in cases {
            #expect(try streams(node(properties, state: state)) == [expected], "\(properties) \(state)")
        }
    }

    @Test func `a program behind the server for PulseAudio is known by its own word only`() throws {
        func client(_ more: String) -> String {
            """
            [{"id":4,"type":"PipeWire:Interface:Client","info":{"props":{"pipewire.sec.pid":77\(more)}}}]
            """
        }
        let stream = node("\"media.class\":\"Stream/Output/Audio\",\"client.id\":4,\"application.process.id\":9")
        let pulse = ",\"client.api\":\"pipewire-pulse\""
        #expect(try streams(client("") + stream).last == [DesktopSound(id: 5, pid: 77)])
        #expect(try streams(client(pulse) + stream).last == [DesktopSound(id: 5, pid: 9)])
        let own = ",\"application.process.id\":8"
        #expect(try streams(client(pulse + own) + stream).last == [DesktopSound(id: 5, pid: 8)])
    }

    @Test(arguments: [
        "hello", "{", "[}", "[{\"a\":1]", "\"x\"", "[1 \"x\"]:", "[{\"a\" \"b\"}]", "[\"a\" [", "]", "[{\"a\":1}]]",
        "[:1]",
        "--monitor",
    ])
    func `what is not JSON is an error`(text: String) {
        var dump = PipeWireDump()
        #expect(throws: PipeWireDump.Invalid.self) { try dump.read(Array(text.utf8)) { _ in } }
    }

    @Test func `nothing grows without a bound`() throws {
        var dump = PipeWireDump()
        #expect(throws: PipeWireDump.Invalid.self) {
            try dump.read([UInt8](repeating: UInt8(ascii: "["), count: 65)) { _ in }
        }
        // A name, a value and a number that are too long are none.
        let long = String(repeating: "9", count: 100_000)
        var found: [PipeWireDump.Object] = []
        dump = PipeWireDump()
        let text =
            "[{\"\(long)\":\"\(long)\",\"id\":\(long),\"type\":\"\(long)\",\"info\":{\"props\":{\"media.class\":\"\(long)\"}}}]"
        try dump.read(Array(text.utf8)) { found.append($0) }
        var expected = PipeWireDump.Object()
        expected.properties = [:]
        #expect(found == [expected])
        var graph = PipeWireGraph()
        for id in 0..<Int64(2 * PipeWireGraph.most) {
            var object = PipeWireDump.Object()
            (object.id, object.type, object.state) = (id, "PipeWire:Interface:Node", "running")
            object.properties = ["media.class": "Stream/Output/Audio", "application.process.id": "\(id + 1)"]
            #expect(graph.take(object) == (id < PipeWireGraph.most))
        }
        #expect(graph.streams.count == DesktopSound.most)
    }
}

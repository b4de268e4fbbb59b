// SPDX-License-Identifier: Apache-2.0

public import DesktopProtocol

/// PipeWire's nodes and clients, as far as they say which processes play or record sound.
public struct PipeWireGraph: Sendable {
    private struct Node: Sendable {
        var state: String?
        var properties: [String: String] = [:]
    }

    private var nodes: [Int64: Node] = [:]
    private var clients: [Int64: [String: String]] = [:]

    /// More nodes, or clients, are ignored: a session has some dozens.
    public static let most = 4096

    /// Nothing is known yet.
    public init() {}

    /// An object has appeared, changed or gone. Returns whether a stream may have.
    @discardableResult
    public mutating func take(_ object: PipeWireDump.Object) -> Bool {
        guard let id = object.id else { return false }
        if object.isGone {
            clients[id] = nil
            return nodes.removeValue(forKey: id) != nil
        }
        switch object.type {
        case "PipeWire:Interface:Node":
            guard nodes[id] != nil || nodes.count < Self.most else { return false }
            if let state = object.state { nodes[id, default: Node()].state = state }
            if let properties = object.properties { nodes[id, default: Node()].properties = properties }
            return true
        case "PipeWire:Interface:Client":
            guard let properties = object.properties, clients[id] != nil || clients.count < Self.most else {
                return false
            }
            clients[id] = properties
            return true
        default: return false
        }
    }

    /// The running streams of sound, in the order in which they were made, at most ``DesktopSound/most``.
    public var streams: [DesktopSound] {
        let all = nodes.sorted { $0.key < $1.key }.compactMap { id, node in stream(id, node) }
        return Array(all.prefix(DesktopSound.most))
    }

    private func stream(_ id: Int64, _ node: Node) -> DesktopSound? {
        let isRecording: Bool
        switch node.properties["media.class"] {
        case "Stream/Output/Audio": isRecording = false
        case "Stream/Input/Audio": isRecording = true
        default: return nil
        }
        // A meter of what others play records nothing.
        guard node.state == "running", node.properties["stream.monitor"] != "true" else { return nil }
        let client = node.properties["client.id"].flatMap { Int64($0) }.flatMap { clients[$0] } ?? [:]
        func pid(_ text: String?) -> Int32? { text.flatMap { Int32($0) }.flatMap { $0 > 0 ? $0 : nil } }
        let claimed = pid(client["application.process.id"]) ?? pid(node.properties["application.process.id"])
        // PipeWire's word about a program that connects through the server for PulseAudio is about that server.
        let isBehind = client["client.api"] == "pipewire-pulse"
        guard let pid = isBehind ? claimed : pid(client["pipewire.sec.pid"]) ?? claimed else { return nil }
        return DesktopSound(id: id, pid: pid, isRecording: isRecording, role: node.properties["media.role"])
    }
}

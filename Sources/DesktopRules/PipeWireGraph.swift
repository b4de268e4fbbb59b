// SPDX-License-Identifier: Apache-2.0

public import DesktopProtocol

/// PipeWire's nodes and clients, which say which processes play or record sound.
public struct PipeWireGraph: Sendable {
    private struct Node: Sendable {
        var state: String?
        var properties: [String: String] = [:]
    }

    private var nodes: [Int64: Node] = [:]
    private var clients: [Int64: [String: String]] = [:]

    /// The most nodes, and the most clients, that are kept; a session has some dozens.
    public static let most = 4096

    /// Creates a graph without nodes and clients.
    public init() {}

    /// Handles an object that has appeared, changed or been removed. Returns whether sound streams may have changed.
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

    /// The running sound streams, the oldest first, at most ``DesktopSound/most``.
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
        // A stream that monitors an output, such as a level meter, does not count as recording.
        guard node.state == "running", node.properties["stream.monitor"] != "true" else { return nil }
        let client = node.properties["client.id"].flatMap { Int64($0) }.flatMap { clients[$0] } ?? [:]
        func pid(_ text: String?) -> Int32? { text.flatMap { Int32($0) }.flatMap { $0 > 0 ? $0 : nil } }
        let claimed = pid(client["application.process.id"]) ?? pid(node.properties["application.process.id"])
        // PipeWire's PulseAudio server connects to PipeWire for its clients, so PipeWire knows only that server's
        // process. Use the pid that the client claims.
        let isBehind = client["client.api"] == "pipewire-pulse"
        guard let pid = isBehind ? claimed : pid(client["pipewire.sec.pid"]) ?? claimed else { return nil }
        return DesktopSound(id: id, pid: pid, isRecording: isRecording, role: node.properties["media.role"])
    }
}

// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// The window with the keyboard focus, as i3 and Sway describe it.
public enum FocusedWindow: Hashable, Sendable {
    /// No window: the workspace is empty.
    case none
    /// A window that belongs to this process.
    case process(Int32)
    /// A window of the X server, by its id. i3 does not report its process.
    case window(UInt32)

    /// The most levels of a tree that are searched.
    fileprivate static let deepest = 256

    /// The focused window below the root of a tree (the answer to GET_TREE).
    public init(tree: JSON) { self = Self.focused(below: tree, 0) ?? .none }

    /// The window of a container (`container` of an event); nil if the container is no window.
    public init?(container: JSON) {
        if let pid = container["pid"]?.intValue, let small = Int32(exactly: pid), small > 0 {
            self = .process(small)
        } else if let window = container["window"]?.intValue, let id = UInt32(exactly: window), id > 0 {
            self = .window(id)
        } else {
            return nil
        }
    }

    /// The focused window below a node; nil if no node below it has the focus.
    private static func focused(below node: JSON, _ depth: Int) -> FocusedWindow? {
        guard depth < deepest else { return nil }
        if node["focused"]?.boolValue == true { return leaf(of: node, depth) }
        for child in children(of: node) {
            if let found = focused(below: child, depth + 1) { return found }
        }
        return nil
    }

    /// The focused window of a container that has the focus: its own window, or the window in it that had the focus
    /// last.
    private static func leaf(of node: JSON, _ depth: Int) -> FocusedWindow {
        guard depth < deepest else { return .none }
        let children = children(of: node)
        if children.isEmpty { return FocusedWindow(container: node) ?? .none }
        let first = node["focus"]?.arrayValue?.first?.intValue
        guard let first, let child = children.first(where: { $0["id"]?.intValue == first }) else { return .none }
        return leaf(of: child, depth + 1)
    }

    fileprivate static func children(of node: JSON) -> [JSON] {
        (node["nodes"]?.arrayValue ?? []) + (node["floating_nodes"]?.arrayValue ?? [])
    }
}

/// A window in the window manager's tree.
public struct ListedWindow: Hashable, Sendable {
    /// The id of the window's container, which commands use.
    public let container: Int64
    /// The window's process, or its id in the X server.
    public let window: FocusedWindow

    /// The most windows that are listed.
    static let most = 256

    /// The windows below the root of a tree (the answer to GET_TREE): those that had the focus last come first.
    public static func all(in tree: JSON) -> [ListedWindow] {
        var found: [ListedWindow] = []
        collect(below: tree, 0, &found)
        return found
    }

    private static func collect(below node: JSON, _ depth: Int, _ found: inout [ListedWindow]) {
        guard depth < FocusedWindow.deepest, found.count < most else { return }
        let children = FocusedWindow.children(of: node)
        guard !children.isEmpty else {
            guard let container = node["id"]?.intValue, let window = FocusedWindow(container: node) else { return }
            found.append(ListedWindow(container: container, window: window))
            return
        }
        let order = (node["focus"]?.arrayValue ?? []).compactMap(\.intValue)
        var places: [Int64: Int] = [:]
        for (place, id) in order.enumerated() where places[id] == nil { places[id] = place }
        let sorted = children.enumerated().sorted { one, other in
            let (first, second) = (one.element["id"]?.intValue, other.element["id"]?.intValue)
            return (first.flatMap { places[$0] } ?? .max, one.offset)
                < (second.flatMap { places[$0] } ?? .max, other.offset)
        }
        for child in sorted { collect(below: child.element, depth + 1, &found) }
    }
}

/// What an event tells about the focus.
public enum FocusEvent: Hashable, Sendable {
    /// This window has the focus now.
    case focused(FocusedWindow)
    /// The focus may have changed: the tree must be requested.
    case unsure
    /// The focus has not changed.
    case same

    /// Reads an event.
    public init(_ kind: WindowManagerMessage.Kind, _ json: JSON) {
        let change = json["change"]?.stringValue ?? ""
        switch kind {
        case .window where change == "focus":
            self = json["container"].flatMap { FocusedWindow(container: $0) }.map { .focused($0) } ?? .unsure
        case .window: self = ["close", "move", "new", "floating"].contains(change) ? .unsure : .same
        case .workspace: self = ["focus", "empty", "init", "move", "reload"].contains(change) ? .unsure : .same
        case .command, .subscribe, .tree: self = .same
        }
    }
}

/// The sockets on which window managers may answer.
public enum FocusSocket {
    /// Whether a file name in the runtime directory is that of a Sway socket of this user (`sway-ipc.UID.PID.sock`).
    public static func isSway(_ name: String, user: UInt32) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "sway-ipc" && parts[1] == "\(user)" && isNumber(parts[2])
            && parts[3] == "sock"
    }

    /// Whether a file name in the runtime directory's folder `i3` is that of an i3 socket (`ipc-socket.PID`).
    public static func isI3(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0] == "ipc-socket" && isNumber(parts[1])
    }

    private static func isNumber(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

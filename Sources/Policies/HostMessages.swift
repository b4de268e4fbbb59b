// SPDX-License-Identifier: Apache-2.0

internal import CPolicyWire
public import TorporPolicyABI

/// Encodes messages to a host process, without I/O; `torpor_policy_wire.h` defines the format.
public enum HostMessages {
    /// The maximum size of a message, in bytes.
    public static let largest = Int(TORPOR_POLICY_WIRE_LIMIT)
    /// The maximum number of events in one question.
    public static let mostEvents = Int(TORPOR_POLICY_EVENT_LIMIT)

    /// The message that tells a host process what to load, and its limits.
    public struct Load: Hashable, Sendable {
        /// The path of the library, for error messages only: the host opens the descriptor that it was started with.
        public var path: String
        /// The configured options, sorted by key.
        public var options: [PolicyOption]
        /// The host's limit of address space in bytes, including all libraries and the shared view of apps.
        public var addressSpace: UInt64
        /// The user that the host changes to; nil to keep its own.
        public var user: UInt32?
        /// The group that the host changes to, with `user`.
        public var group: UInt32?
        /// The size of the shared view of apps (``PolicyView``), in bytes.
        public var viewSize: Int
        /// The maximum number of pieces of advice per question.
        public var adviceLimit: Int

        /// Creates a load message from its parts.
        public init(
            path: String,
            options: [PolicyOption] = [],
            addressSpace: UInt64,
            user: UInt32? = nil,
            group: UInt32? = nil,
            viewSize: Int,
            adviceLimit: Int
        ) {
            self.path = path
            self.options = options
            self.addressSpace = addressSpace
            self.user = user
            self.group = group
            self.viewSize = viewSize
            self.adviceLimit = adviceLimit
        }

        /// The encoded message.
        ///
        /// - Throws: ``PolicyFailure/refused(_:)`` if the options do not fit into a message.
        public func encoded() throws(PolicyFailure) -> [UInt8] {
            var bytes: [UInt8] = []
            append(
                torpor_policy_wire_load(
                    header: torpor_policy_wire_header(
                        type: TORPOR_POLICY_LOAD.rawValue,
                        count: UInt32(clamping: options.count),
                        serial: 0
                    ),
                    version: TORPOR_POLICY_WIRE_VERSION,
                    flags: 0,
                    address_space: addressSpace,
                    user: user ?? .max,
                    group: group ?? .max,
                    view_size: UInt64(viewSize),
                    advice_limit: UInt32(clamping: adviceLimit),
                    reserved: 0
                ),
                to: &bytes
            )
            guard append(text: path, to: &bytes) else {
                throw .refused("the path of a library cannot have a NUL in it")
            }
            for option in options {
                append(
                    torpor_policy_wire_option(
                        type: option.type,
                        reserved: 0,
                        integer: option.integer,
                        number: option.number
                    ),
                    to: &bytes
                )
                guard append(text: option.key, to: &bytes), append(text: option.text, to: &bytes) else {
                    throw .refused(
                        "\(path): option \(option.key) has a NUL in it, which a policy would take for its end"
                    )
                }
            }
            guard options.count <= Int(TORPOR_POLICY_OPTION_LIMIT), bytes.count <= HostMessages.largest else {
                throw .refused(
                    "\(path): its options do not fit into \(HostMessages.largest / 1024) KiB: use at most "
                        + "\(TORPOR_POLICY_OPTION_LIMIT) of them, and put long texts into files"
                )
            }
            return bytes
        }
    }

    /// Writes a question into `bytes`, replacing its contents.
    ///
    /// - Parameters:
    ///   - serial: the number of the question; the answer repeats it.
    ///   - events: 1 to ``mostEvents`` events.
    public static func encodeQuestion(serial: UInt64, _ events: [torpor_policy_event], into bytes: inout [UInt8]) {
        precondition(!events.isEmpty && events.count <= mostEvents, "1 to \(mostEvents) events make a question")
        bytes.removeAll(keepingCapacity: true)
        append(
            torpor_policy_wire_ask(
                header: torpor_policy_wire_header(
                    type: TORPOR_POLICY_ASK.rawValue,
                    count: UInt32(events.count),
                    serial: serial
                ),
                event_size: UInt32(MemoryLayout<torpor_policy_event>.stride),
                reserved: 0
            ),
            to: &bytes
        )
        for event in events {
            var event = event
            event.size = UInt32(MemoryLayout<torpor_policy_event>.size)
            append(event, to: &bytes)
        }
    }

    private static func append<Value: BitwiseCopyable>(_ value: Value, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
    }

    /// Appends a text and a NUL; returns false if the text itself contains NUL.
    private static func append(text: String, to bytes: inout [UInt8]) -> Bool {
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        guard !bytes[start...].contains(0) else { return false }
        bytes.append(0)
        return true
    }
}

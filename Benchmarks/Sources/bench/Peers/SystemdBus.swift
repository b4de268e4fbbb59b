// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A persistent connection to a systemd manager, over systemctl's private socket. It implements the subset of D-Bus
/// for methods with string arguments (https://dbus.freedesktop.org/doc/dbus-specification.html).
final class SystemdBus {
    static let manager = "/org/freedesktop/systemd1"
    private let socket: Int32
    private var serial: UInt32 = 0

    /// Takes a connection made by a process that systemd can see.
    init(taking connection: Int32) throws {
        socket = connection
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        // 30 is the digit 0 in hexadecimal: root. Send all at once: if BEGIN and the first message arrive in one
        // piece, systemd notices the message only when another one follows.
        guard write([0] + Array("AUTH EXTERNAL 30\r\nBEGIN\r\n".utf8)), try line().hasPrefix("OK ")
        else { throw Trouble("systemd does not take the connection") }
    }

    deinit { close(socket) }

    /// The object path of a unit.
    static func object(_ unit: String) -> String {
        let letters = unit.utf8.map { byte -> String in
            let isPlain = (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : String(format: "_%02x", byte)
        }
        return manager + "/unit/" + letters.joined()
    }

    /// Calls a method; returns the bytes of the reply's body.
    @discardableResult
    func call(_ path: String, _ interface: String, _ member: String, _ arguments: String...) throws -> [UInt8] {
        serial += 1
        var body = Marshal()
        for argument in arguments { body.string(argument) }
        var fields = Marshal()
        fields.field(1, "o", path)
        fields.field(2, "s", interface)
        fields.field(3, "s", member)
        if !arguments.isEmpty { fields.field(8, "g", String(repeating: "s", count: arguments.count)) }
        var message = Marshal()
        // Little endian, method call, no flags, version 1.
        message.bytes = [UInt8(ascii: "l"), 1, 0, 1]
        message.number(UInt32(body.bytes.count))
        message.number(serial)
        message.number(UInt32(fields.bytes.count))
        message.bytes += fields.bytes
        message.align(8)
        guard write(message.bytes + body.bytes) else { throw Trouble("systemd closed the connection") }
        return try answer(to: serial, member)
    }

    private func answer(to serial: UInt32, _ member: String) throws -> [UInt8] {
        while true {
            let head = try read(16)
            let bodyLength = Int(number(head, 4))
            let fieldsLength = Int(number(head, 12))
            let fields = try read((fieldsLength + 7) / 8 * 8)
            let body = try read(bodyLength)
            // 2: method return; 3: error; anything else is an unrequested signal.
            guard head[1] == 2 || head[1] == 3, replySerial(fields, fieldsLength) == serial else { continue }
            guard head[1] == 2 else {
                let said = String(decoding: body.dropFirst(4).filter { $0 >= 0x20 && $0 < 0x7f }, as: UTF8.self)
                throw Trouble("systemd refused \(member): \(said)")
            }
            return body
        }
    }

    /// REPLY_SERIAL, field 5 of a header.
    private func replySerial(_ fields: [UInt8], _ length: Int) -> UInt32? {
        var at = 0
        while at + 8 <= length {
            at = (at + 7) / 8 * 8
            guard at + 8 <= length else { return nil }
            let code = fields[at]
            let type = fields[at + 2]
            at += 4  // code, the length of the signature, one letter, NUL
            switch type {
            case UInt8(ascii: "u"):
                if code == 5 { return number(fields, at) }
                at += 4
            case UInt8(ascii: "g"): at += Int(fields[at]) + 2
            default: at += 4 + Int(number(fields, at)) + 1
            }
        }
        return nil
    }

    private func number(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        bytes[at..<at + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private func write(_ bytes: [UInt8]) -> Bool {
        var from = 0
        while from < bytes.count {
            let count = bytes[from...].withUnsafeBytes {
                send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            from += count
        }
        return true
    }

    private func read(_ length: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: length)
        var from = 0
        while from < length {
            let count = bytes.withUnsafeMutableBytes { recv(socket, $0.baseAddress! + from, length - from, 0) }
            if count < 0, errno == EINTR {
                try Interruption.check()
                continue
            }
            guard count > 0 else { throw Trouble("systemd did not answer on the connection") }
            from += count
        }
        return bytes
    }

    private func line() throws -> String {
        var text: [UInt8] = []
        while text.last != UInt8(ascii: "\n") { text += try read(1) }
        return String(decoding: text, as: UTF8.self)
    }
}

/// Encodes D-Bus values, little endian.
private struct Marshal {
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
        while bytes.count % size != 0 { bytes.append(0) }
    }

    mutating func number(_ value: UInt32) {
        align(4)
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }

    mutating func string(_ text: String) {
        number(UInt32(text.utf8.count))
        bytes += text.utf8 + [0]
    }

    /// A header field: a code and a variant.
    mutating func field(_ code: UInt8, _ type: Character, _ value: String) {
        align(8)
        bytes += [code, 1, type.asciiValue!, 0]
        if type == "g" {
            bytes += [UInt8(value.utf8.count)] + value.utf8 + [0]
        } else {
            string(value)
        }
    }
}

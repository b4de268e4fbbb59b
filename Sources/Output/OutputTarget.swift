// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Destinations of an app's output other than Torpor's own logs.
public enum OutputTarget {
    /// The socket of systemd's journal for streams.
    public static let journalPath = "/run/systemd/journal/stdout"

    /// For `log = "inherit"`: a duplicate of torpord's own standard output (1) or standard error (2).
    public static func inherit(_ number: Int32 = 1) throws(OutputError) -> Descriptor {
        do throws(Errno) {
            return try Descriptor.duplicate(number, minimum: 3)
        } catch {
            throw OutputError(
                description: "could not pass on descriptor \(number) of torpord: \(error.description.lowercased())"
            )
        }
    }

    /// For `log = "journal"`: opens a stream to systemd's journal, to which the app writes directly, without torpord in
    /// between. The journal takes the unit of a line from the cgroup of the writing process; if that process has ended,
    /// it records `unit` instead, which it accepts only from root. `priority` is a priority of syslog(3): 6 is info, 4
    /// warning; a line may begin with another priority (sd-daemon(3)).
    public static func journal(
        app: String,
        unit: String = "",
        priority: Int = 6,
        path: String = journalPath
    ) throws(OutputError) -> Descriptor {
        // The header has one field per line: identifier, unit, priority, level prefix, and three forwarding flags.
        let name = app.utf8.contains(UInt8(ascii: "\n")) ? "torpor" : app
        do throws(Errno) {
            // A journal that does not accept connections must not block the event loop.
            let stream = try Sockets.connect(path: path, sendTimeout: .milliseconds(200))
            try Sockets.shutdownReading(stream.raw)
            let header = Array("\(name)\n\(unit)\n\(priority)\n1\n0\n0\n0\n".utf8)
            guard try Sockets.send(stream.raw, header, wait: true) == header.count else { throw .timedOut }
            try Sockets.setSendTimeout(stream.raw, nil)
            return stream
        } catch {
            throw OutputError(
                description: "there is no journal at \(path) (\(error.description.lowercased())), so the output of "
                    + "\(app) cannot go there: choose log = \"file\""
            )
        }
    }
}

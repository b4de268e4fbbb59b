// SPDX-License-Identifier: Apache-2.0

/// Pressure stall information (PSI): the share of time in which tasks waited for a resource.
///
/// https://docs.kernel.org/accounting/psi.html
public struct Pressure: Hashable, Sendable {
    /// A resource for which tasks wait.
    public enum Resource: String, CaseIterable, Sendable {
        /// Tasks waited for memory.
        case memory
        /// Tasks waited for a processor.
        case cpu
        /// Tasks waited for a disk.
        case io
    }

    /// Share of the last 10 s in which some task waited for the resource, in hundredths of a percent.
    public var some: UInt32
    /// Share of the last 10 s in which all non-idle tasks waited for the resource at once, in hundredths of a
    /// percent. nil if the kernel does not report this, as for processors before Linux 5.13.
    public var full: UInt32?
    /// Total time since boot in which some task waited for the resource, microseconds.
    public var someTotal: UInt64
    /// Total time since boot in which all non-idle tasks waited for the resource at once, microseconds. nil if the
    /// kernel does not report it.
    public var fullTotal: UInt64?

    /// Reads the pressure on a resource; nil if the kernel does not track pressure (CONFIG_PSI, `psi=1`) or does not
    /// let this process read it.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public init?(on resource: Resource, root: String = "") {
        self.init(path: root + "/proc/pressure/" + resource.rawValue)
    }

    /// The pressure in the cgroup with this path; nil if the kernel does not track it or does not let this process read
    /// it.
    public init?(of cgroup: String, on resource: Resource) {
        self.init(path: cgroup + "/" + resource.rawValue + ".pressure")
    }

    private init?(path: String) {
        guard let text = try? File.readString(path), let some = Line("some", in: text) else { return nil }
        let full = Line("full", in: text)
        self.some = some.average
        self.someTotal = some.total
        self.full = full?.average
        self.fullTotal = full?.total
    }

    private struct Line {
        let average: UInt32
        let total: UInt64

        init?(_ kind: String, in text: String) {
            // A line looks like this: some avg10=0.24 avg60=0.48 avg300=0.51 total=304559913
            // Bytes, not characters: this is read every few seconds.
            for line in text.utf8.split(separator: UInt8(ascii: "\n")) where line.starts(with: kind.utf8) {
                let words = line.split(separator: UInt8(ascii: " "))
                guard words.first?.count == kind.utf8.count else { continue }
                guard let average = words.first(where: { $0.starts(with: "avg10=".utf8) }),
                    let average = hundredths(Substring(average.dropFirst(6)))
                else { return nil }
                self.average = average
                let total = words.first { $0.starts(with: "total=".utf8) }
                self.total = total.flatMap { UInt64(Substring($0.dropFirst(6))) } ?? 0
                return
            }
            return nil
        }
    }
}

/// Pressure stall information: how much of the time work waited for a resource.
///
/// https://docs.kernel.org/accounting/psi.html
public struct Pressure: Hashable, Sendable {
    /// What is waited for.
    public enum Resource: String, CaseIterable, Sendable {
        /// Memory.
        case memory
        /// A processor.
        case cpu
        /// A disk.
        case io
    }

    /// Some task waited: hundredths of a percent of the last 10 s.
    public var some: UInt32
    /// All tasks that were not idle waited at once: the same unit. nil where the kernel does not say, as for
    /// processors before Linux 5.13.
    public var full: UInt32?

    /// The pressure on a resource; nil where the kernel keeps none (CONFIG_PSI, `psi=1`) or does not show it.
    ///
    /// - Parameter root: what stands before `/proc`.
    public init?(on resource: Resource, root: String = "") {
        guard let text = try? File.readString(root + "/proc/pressure/" + resource.rawValue),
            let some = Self.average(of: "some", in: text)
        else { return nil }
        self.some = some
        full = Self.average(of: "full", in: text)
    }

    private static func average(of kind: String, in text: String) -> UInt32? {
        // some avg10=0.24 avg60=0.48 avg300=0.51 total=304559913
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.first == Substring(kind) else { continue }
            return words.first { $0.hasPrefix("avg10=") }.flatMap { hundredths($0.dropFirst(6)) }
        }
        return nil
    }
}

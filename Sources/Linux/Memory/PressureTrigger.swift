// SPDX-License-Identifier: Apache-2.0

/// Tells when work has waited for a resource for too long: a trigger of pressure stall information.
///
/// Watch the descriptor for `.priority`: it comes at most once a window, within a fraction of it, and each wait
/// takes it. `.error` means that the cgroup is gone and nothing will come any more: cancel the watch, or it spins.
///
/// https://docs.kernel.org/accounting/psi.html#monitoring-for-pressure-thresholds
public struct PressureTrigger {
    /// How much of the work has to wait.
    public enum Share: String, Sendable {
        /// Some task.
        case some
        /// All that were not idle.
        case full
    }

    /// What is watched; the trigger ends with it. One descriptor has one trigger.
    public let descriptor: Descriptor

    /// A trigger for the whole machine.
    ///
    /// - Parameters:
    ///   - stall: so much waiting …
    ///   - window: … within so much time, 0.5 to 10 s. Without CAP_SYS_RESOURCE only multiples of
    ///     ``ordinaryWindow`` are allowed, and none by older kernels (Debian 12's 6.1).
    /// - Throws: ENOENT or EOPNOTSUPP where the kernel keeps none, EINVAL for a window that is not allowed, EPERM or
    ///   EACCES for an ordinary user of an older kernel.
    public init(
        on resource: Pressure.Resource,
        _ share: Share = .some,
        stall: Duration,
        window: Duration
    ) throws(Errno) {
        try self.init(path: "/proc/pressure/" + resource.rawValue, share, stall: stall, window: window)
    }

    /// A trigger for a cgroup, by its path; whoever may write in it may have one.
    public init(
        of cgroup: String,
        on resource: Pressure.Resource,
        _ share: Share = .some,
        stall: Duration,
        window: Duration
    ) throws(Errno) {
        try self.init(path: cgroup + "/" + resource.rawValue + ".pressure", share, stall: stall, window: window)
    }

    private init(path: String, _ share: Share, stall: Duration, window: Duration) throws(Errno) {
        let opened = try File.open(path, [.readWrite, .nonBlocking])
        let text = "\(share.rawValue) \(stall.microseconds) \(window.microseconds)\0"
        try opened.withRaw { raw throws(Errno) in
            guard try Descriptor.write(raw, Array(text.utf8)) == text.utf8.count else { throw .invalidArgument }
        }
        descriptor = opened
    }

    /// What the window of an ordinary user has to be a multiple of.
    public static let ordinaryWindow = Duration.seconds(2)
}

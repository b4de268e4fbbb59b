// SPDX-License-Identifier: Apache-2.0

/// A trigger for pressure stall information (PSI): it reports when tasks have waited too long for a resource.
///
/// Watch the descriptor for `.priority`. The kernel reports this event at most once per window, and each epoll_wait(2)
/// consumes it. `.error` means that the cgroup was removed. Stop watching the descriptor then, because it stays ready
/// and the event loop would spin.
///
/// https://docs.kernel.org/accounting/psi.html#monitoring-for-pressure-thresholds
public struct PressureTrigger {
    /// Which tasks have to wait to activate the trigger.
    public enum Share: String, Sendable {
        /// At least one task has to wait.
        case some
        /// All non-idle tasks have to wait at once.
        case full
    }

    /// The descriptor to watch. Closing it removes the trigger; a descriptor has only one trigger.
    public let descriptor: Descriptor

    /// Creates a trigger for the whole machine.
    ///
    /// - Parameters:
    ///   - stall: how long tasks must wait in total within `window` to activate the trigger.
    ///   - window: 0.5 to 10 s. Without CAP_SYS_RESOURCE it must be a multiple of ``ordinaryWindow``; older kernels
    ///     (such as Debian 12's 6.1) allow no trigger at all without CAP_SYS_RESOURCE.
    /// - Throws: ENOENT or EOPNOTSUPP if the kernel has no PSI, EINVAL for a window that is not allowed, EPERM or
    ///   EACCES without privileges on an older kernel.
    public init(
        on resource: Pressure.Resource,
        _ share: Share = .some,
        stall: Duration,
        window: Duration
    ) throws(Errno) {
        try self.init(path: "/proc/pressure/" + resource.rawValue, share, stall: stall, window: window)
    }

    /// Creates a trigger for the cgroup at a path. Needs write access to the cgroup.
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

    /// Without CAP_SYS_RESOURCE, the window of a trigger must be a multiple of this.
    public static let ordinaryWindow = Duration.seconds(2)
}

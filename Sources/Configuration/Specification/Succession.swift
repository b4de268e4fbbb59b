// SPDX-License-Identifier: Apache-2.0

import Linux

extension Probe {
    /// The port to which the probe connects; nil if it connects to none.
    var port: UInt16? {
        switch kind {
        case .tcp(_, let port), .http(_, let port, _): port
        case .command, .inside, .file: nil
        }
    }
}

extension AppSpecification {
    /// Whether both run the same program in the same way, as an app does after a new name. The same command alone does
    /// not say so: several workers may differ only in their directory or environment.
    private func runsLike(_ other: AppSpecification) -> Bool {
        !exec.isEmpty && exec == other.exec && self.directory == other.directory && self.user == other.user
            && self.environment == other.environment && self.environmentFiles == other.environmentFiles
    }

    /// Whether this app probably needs what an app that is removed, `other`, has until it ends, such as a port: it runs
    /// the same program in the same way, has a socket at the same address, or is ready at the same port.
    public func takesPlace(of other: AppSpecification) -> Bool {
        if runsLike(other) { return true }
        if case .probe(let one) = readiness, case .probe(let earlier) = other.readiness, let port = one.port,
            port == earlier.port
        {
            return true
        }
        return sockets.contains { one in
            other.sockets.contains { earlier in
                one.plan.kind == earlier.plan.kind && one.plan.address == earlier.plan.address
                    && !(one.plan.reusePort && earlier.plan.reusePort)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Processes
import TransferProtocol

extension TransferCommand: CompanionCommand {}

extension TransferReport: CompanionReport {
    var isGreeting: Bool { if case .here = self { true } else { false } }
}

/// The process (torpor-transfer) that carries out the transfers of one app. It runs as the app's user, but is not a
/// part of the app. It runs while the app has a running transfer, and for a little longer.
final class TransferHelper: Companion<TransferCommand, TransferReport> {
    /// The data that a background thread looks up before a helper (a torpor-transfer process) starts.
    struct Facts: Sendable {
        let account: Account?
        /// The bytes that downloads must leave free on the filesystem.
        let minimumFree: Int64
    }

    /// The configured properties of a helper (a torpor-transfer process). If any of them changes, the helper is
    /// replaced.
    struct Manner: Hashable {
        /// The folders and files that the helper may use, as its arguments.
        let arguments: [String]
        let account: Account.Names?
    }

    let manner: Manner
    /// The bytes that the helper's downloads must leave free on the filesystem.
    let minimumFree: Int64

    init(
        of app: String,
        _ manner: Manner,
        minimumFree: Int64,
        _ profile: StateProfile,
        cgroup: String?,
        _ supervisor: Supervisor,
        _ callbacks: Callbacks
    ) {
        self.manner = manner
        self.minimumFree = minimumFree
        let place = CompanionPlace(name: app, heldName: DescriptorName.transfers(app), cgroup: cgroup)
        super.init(place, profile, supervisor, callbacks)
    }
}

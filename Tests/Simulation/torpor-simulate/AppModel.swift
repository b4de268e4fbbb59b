// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel

/// An app of the configuration, over all its runs.
final class AppModel {
    enum Kind: CaseIterable {
        /// Knows nothing of torpord.
        case unaware
        /// Speaks sd_notify.
        case notify
        /// Has a delegate.
        case delegate
    }

    let name: String
    let kind: Kind
    /// What the configuration on disk says of it.
    var settings: [String] = []
    /// The configuration on disk names it.
    var isConfigured = true
    /// It was taken out of the configuration at some time. What it writes as it ends is lost when torpord is killed then.
    var wasRemoved = false
    /// All that its runs have written, in order.
    var lines: [WrittenLine] = []
    var runs = 0

    init(_ name: String, _ kind: Kind) {
        self.name = name
        self.kind = kind
    }
}

/// A line that an app has written.
struct WrittenLine {
    let text: String
    /// How many torpords had ended by then.
    let deaths: Int
    /// How many keepers had ended by then: what apps have in their pipes ends with the keeper.
    let keepers: Int
}

/// A process of an app.
final class ProcessModel {
    let pid: Int32
    let app: AppModel
    let incarnation: UInt32
    /// The first of its incarnation.
    let isMain: Bool
    let isHelper: Bool
    /// Its output; −1 when it has none.
    var output: Int32 = -1
    var passed: [Int32] = []
    var hasExecuted = false
    var hasSaidReady = false
    var written = 0
    var isEnding = false
    var notifySocket = ""
    var hasWatchdog = false
    /// When it sent its last heartbeat.
    var beatAt: Int64 = 0
    var delegate: DelegateModel?

    init(_ pid: Int32, _ app: AppModel, _ incarnation: UInt32, isMain: Bool, isHelper: Bool) {
        self.pid = pid
        self.app = app
        self.incarnation = incarnation
        self.isMain = isMain
        self.isHelper = isHelper
    }

    var kernel: UnsafeMutablePointer<sim_process>? { sim_find(pid) }
    var isAlive: Bool { kernel.map { $0.pointee.state != CChar(UInt8(ascii: "Z")) } ?? false }
    var isStopped: Bool { kernel?.pointee.state == CChar(UInt8(ascii: "T")) }

    func closeDescriptors() {
        sim_close(output)
        output = -1
        for fd in passed { sim_close(fd) }
        passed = []
        delegate?.close()
    }
}

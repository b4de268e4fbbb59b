// SPDX-License-Identifier: Apache-2.0

import Linux
import Processes

extension Keeper {
    /// Whether no app of an earlier torpord runs. If so, ends companion processes, which are useless without their
    /// apps.
    func endsWithoutApps() -> Bool {
        guard leftOver.allSatisfy({ $0.incarnation == AppTag.companion }) else { return false }
        for process in leftOver { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        return true
    }
}

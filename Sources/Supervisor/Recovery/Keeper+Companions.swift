// SPDX-License-Identifier: Apache-2.0

import Linux
import Processes

extension Keeper {
    /// Whether no app of an earlier torpord runs. What works for apps beside them is ended then: it is of no use to anybody.
    func endsWithoutApps() -> Bool {
        guard leftOver.allSatisfy({ $0.incarnation == AppTag.companion }) else { return false }
        for process in leftOver { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        return true
    }
}

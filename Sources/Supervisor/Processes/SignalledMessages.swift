// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle

extension Incarnation {
    /// The signals by which the app was told messages in this run, each with the last of its messages.
    var signalled: [Int32: Message] {
        get { slots[SignalledSlot.self] ?? [:] }
        set { slots[SignalledSlot.self] = newValue }
    }
}

private enum SignalledSlot: Slot { typealias Value = [Int32: Message] }

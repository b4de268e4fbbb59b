// SPDX-License-Identifier: Apache-2.0

import MeasuredProgram
import Processes

@testable import Supervisor

extension MeasuredProgram {
    /// As the supervisor shows it for measuring.
    func app(_ id: Int = 0, suspendedSince: Duration? = nil, saving: ClosedRange<Duration>? = nil) -> MeasuredApp {
        MeasuredApp(id: id, tree: tree, suspendedSince: suspendedSince, saving: saving)
    }
}

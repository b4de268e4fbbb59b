// SPDX-License-Identifier: Apache-2.0

import Configuration
import PathWatch

extension PathTrigger.Condition {
    /// Which changes at the path must be watched for this condition.
    var interest: Place.Interest {
        switch self {
        case .exists: .existence
        case .changed: .changes
        case .modified: .writes
        case .notEmpty: .entries
        }
    }

    /// What happened at the path, as a text for the log and the history.
    func text(_ path: String) -> String {
        switch self {
        case .exists: "the existence of \(path)"
        case .changed, .modified: "a change of \(path)"
        case .notEmpty: "something in \(path)"
        }
    }
}

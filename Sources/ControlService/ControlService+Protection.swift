// SPDX-License-Identifier: Apache-2.0

import Engine
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about protected data.
extension ControlService {
    func lockData(by person: String, _ reply: Reply) {
        supervisor.protection.lock(by: person) { outcome in
            switch outcome {
            case .success(let message): reply.send(["message": .optional(message)])
            case .failure(let refusal): reply.fail("protected data is not locked yet: \(refusal)")
            }
        }
    }

    func unlockData(by person: String, _ reply: Reply) {
        supervisor.protection.unlock(by: person) { outcome in
            switch outcome {
            case .success(let message): reply.send(["message": .optional(message)])
            case .failure(let refusal): reply.fail("protected data stays locked: \(refusal)")
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Engine
import TorporAPI
import Varlink
import VarlinkServer

/// Requests of an app about its permissions.
extension AppSockets {
    func permission(_ request: AppRequest, _ reply: Reply, _ app: AppRuntime) {
        let permissions = supervisor.permissions
        switch request {
        case .permissions:
            supervisor.persistence.whenLoaded {
                reply.send(["permissions": .array(permissions.states(of: app).map(\.json))])
            }
        case .requestPermission(let name):
            permissions.request(name, for: app) { result in
                switch result {
                case .success(let standing): reply.send(standing.json)
                case .failure(let refusal):
                    reply.fail(AppInterface.ErrorName.failed, ["message": .string("\(refusal)")])
                }
            }
        default: break
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Engine
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about downloads and uploads.
extension ControlService {
    func transfers(_ request: TransfersRequest, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = request.apps.isEmpty ? Array(apps) : try selection.resolve(request.apps)
        supervisor.persistence.whenLoaded { [self] in
            let infos = supervisor.transfers.infos(of: chosen, session: request.session)
            reply.send(BoundedReply.list("transfers", infos.map(\.json), shortening: ["url", "file"]))
        }
    }

    func cancel(_ request: CancelTransfersRequest, by person: String, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = request.apps.isEmpty ? [] : try selection.resolve(request.apps)
        supervisor.persistence.whenLoaded { [self] in
            supervisor.transfers.cancel(chosen, request.ids, by: person) { result in
                switch result {
                case .success(let ids): reply.send(["ids": .array(ids.map { .int($0) })])
                case .failure(.invalid(let error)): reply.fail(error)
                case .failure(.failed(let sentence)): reply.fail(sentence)
                }
            }
        }
    }
}

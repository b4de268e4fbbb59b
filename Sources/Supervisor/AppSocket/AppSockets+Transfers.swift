// SPDX-License-Identifier: Apache-2.0

import Engine
import TorporAPI
import Varlink
import VarlinkServer

/// Requests of an app to download and upload.
extension AppSockets {
    func transfer(_ request: AppRequest, _ reply: Reply, _ app: AppRuntime) {
        let transfers = supervisor.transfers
        switch request {
        case .startTransfer(let request):
            transfers.start(request, of: app) { result in
                switch result {
                case .success(let id): reply.send(["id": .int(id)])
                case .failure(let problem): Self.refuse(problem, reply)
                }
            }
        case .transfers(let session, let after):
            supervisor.persistence.whenLoaded {
                let infos = transfers.infos(of: [app], session: session, withFeeds: false)
                let rest = infos.filter { $0.id > after ?? .min }
                reply.send(BoundedReply.part("transfers", rest.map(\.json)))
            }
        case .cancelTransfer(let id):
            supervisor.persistence.whenLoaded {
                transfers.cancel(id, of: app) { problem in
                    if let problem { Self.refuse(problem, reply) } else { reply.send() }
                }
            }
        case .answerLogin(let request):
            supervisor.persistence.whenLoaded {
                if let problem = transfers.answer(request, of: app) {
                    Self.refuse(problem, reply)
                } else {
                    reply.send()
                }
            }
        default: break
        }
    }

    private static func refuse(_ problem: TransferProblem, _ reply: Reply) {
        switch problem {
        case .invalid(let error): reply.fail(error)
        case .failed(let sentence): reply.fail(AppInterface.ErrorName.failed, ["message": .string(sentence)])
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Engine
import TorporAPI
import Varlink
import VarlinkServer

/// Requests of an app about its alerts and its badge.
extension AppSockets {
    func alert(_ request: AppRequest, _ reply: Reply, _ app: AppRuntime) {
        let alerts = supervisor.alerts
        switch request {
        case .scheduleAlert(let request):
            alerts.schedule(request, of: app, isOperators: false) { result in
                switch result {
                case .success(let done): reply.send(["alert": done.info.json, "warning": .optional(done.warning)])
                case .failure(let problem): Self.refuse(problem, reply)
                }
            }
        case .cancelAlert(let ids):
            supervisor.persistence.whenLoaded {
                alerts.cancel([app], ids: ids, numbers: nil, isApps: true) { result in
                    switch result {
                    case .success(let cancelled): reply.send(AppAlerts.json(ofCancelled: cancelled))
                    case .failure(let problem): Self.refuse(problem, reply)
                    }
                }
            }
        case .alerts:
            supervisor.persistence.whenLoaded {
                reply.send([
                    "alerts": .array(alerts.infos(of: [app], withQuestions: false).map(\.json)),
                    "badge": .int(alerts.badge(of: app)),
                ])
            }
        case .setBadge(let count):
            supervisor.persistence.whenLoaded {
                alerts.setBadge(count, of: app) { problem in
                    if let problem { Self.refuse(problem, reply) } else { reply.send() }
                }
            }
        default: break
        }
    }

    private static func refuse(_ problem: AlertProblem, _ reply: Reply) {
        switch problem {
        case .invalid(let error): reply.fail(error)
        case .notPermitted(let sentence):
            reply.fail(AppInterface.ErrorName.notPermitted, ["message": .string(sentence)])
        case .refused(let sentence, let reason): fail(reply, sentence, reason)
        case .failed(let sentence): fail(reply, sentence, nil)
        }
    }

    /// Replies with the error Failed.
    static func fail(_ reply: Reply, _ sentence: String, _ reason: AppInterface.FailureReason?) {
        var parameters: JSONObject = ["message": .string(sentence)]
        if let reason { parameters["reason"] = .string(reason.rawValue) }
        reply.fail(AppInterface.ErrorName.failed, .object(parameters))
    }
}

// SPDX-License-Identifier: Apache-2.0

import Engine
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about alerts and badges.
extension ControlService {
    func schedule(_ request: ScheduleAppAlertRequest, _ reply: Reply) throws(Selection.Unknown) {
        let app = try selection.one(request.app)
        supervisor.alerts.schedule(request.alert, of: app, isOperators: true) { result in
            switch result {
            case .success(let done): reply.send(["alert": done.info.json, "warning": .optional(done.warning)])
            case .failure(let problem): Self.refuse(problem, reply)
            }
        }
    }

    func alerts(_ request: AlertsRequest, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = request.apps.isEmpty ? Array(apps) : try selection.resolve(request.apps)
        supervisor.persistence.whenLoaded { [self] in
            let infos = supervisor.alerts.infos(of: chosen)
            let problem: JSONObject = ["problem": .optional(supervisor.desktop.alertProblem)]
            reply.send(BoundedReply.list("alerts", infos.map(\.json), with: problem))
        }
    }

    func cancel(_ request: AlertsRequest, _ reply: Reply) throws(Selection.Unknown) {
        guard !request.apps.isEmpty || request.ids != nil || request.numbers != nil else {
            return reply.fail(FieldError(field: "apps", problem: "or ids or numbers must be given"))
        }
        let chosen = request.apps.isEmpty ? Array(apps) : try selection.resolve(request.apps)
        supervisor.persistence.whenLoaded { [self] in
            supervisor.alerts.cancel(
                chosen,
                ids: request.ids,
                numbers: request.numbers,
                namesApps: !request.apps.isEmpty
            ) { result in
                switch result {
                case .success(let alerts): reply.send(AppAlerts.json(ofCancelled: alerts))
                case .failure(let problem): Self.refuse(problem, reply)
                }
            }
        }
    }

    func answer(_ request: AnswerAlertRequest, by person: String, _ reply: Reply) throws(Selection.Unknown) {
        let chosen =
            try request.app.map { name throws(Selection.Unknown) in try selection.resolve([name]) } ?? Array(apps)
        supervisor.persistence.whenLoaded { [self] in
            do throws(AlertProblem) {
                let number: Int64
                if let given = request.number {
                    number = try supervisor.alerts.openAlert(given, of: chosen)
                } else {
                    number = try supervisor.alerts.openAlert(request.id ?? "", of: chosen)
                }
                supervisor.alerts.answer(number, request.action, by: person) { problem in
                    if let problem { Self.refuse(problem, reply) } else { reply.send() }
                }
            } catch {
                Self.refuse(error, reply)
            }
        }
    }

    func setBadge(_ count: Int64, of app: AppRuntime, _ reply: Reply) {
        supervisor.persistence.whenLoaded { [self] in
            supervisor.alerts.setBadge(count, of: app) { problem in
                if let problem { Self.refuse(problem, reply) } else { reply.send() }
            }
        }
    }

    private static func refuse(_ problem: AlertProblem, _ reply: Reply) {
        switch problem {
        case .invalid(let error): reply.fail(error)
        case .notPermitted(let sentence), .failed(let sentence), .refused(let sentence, _): reply.fail(sentence)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Processes
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Lists of apps, which clients such as dashboards request often.
extension ControlService {
    /// Replies with the apps, and with the templates of scenes.
    func send(list apps: [AppRuntime], templates: [SceneTemplateInfo], _ reply: Reply) {
        let listing = Listing(self)
        reply.sendText { writer in
            Replies.append(list: apps.lazy.map { LiveApp($0, listing) }, templates: templates, to: &writer)
        }
    }

    func summary(_ app: AppRuntime) -> AppSummary { AppSummary(of: LiveApp(app, Listing(self))) }

    /// Reads the memory and processor time of apps whose last values are too old.
    func sampleUsage() {
        let now = loop.now
        var living: [AppRuntime] = []
        var trees: [ProcessTree] = []
        for app in apps.all {
            let run = app.run
            guard let tree = run.tree, Self.isUsageOld(run, now) else { continue }
            living.append(app)
            trees.append(tree)
        }
        guard !living.isEmpty else { return }
        let samples = ProcessTree.samples(of: trees)
        let sampledAt = loop.now
        for (app, sample) in zip(living, samples) { (app.run.usage, app.run.sampledAt) = (sample.usage, sampledAt) }
        for (app, sample) in zip(living, samples) {
            let isSeen = sample.isStopped == true && sample.usage.processes == 1
            if !isSeen { supervisor.processControl.checkStillSuspended(app) }
            inspectStop(app, sample.isStopped)
        }
    }

    /// Whether the app's memory and processor time must be read again. Values expire after 1 s, or 1 ms for each
    /// process, because reading them takes longer the more processes there are. Values read less than 1 s after the
    /// launch expire sooner, after the time that the app had run by then, because values change fast after a launch.
    static func isUsageOld(_ run: Incarnation, _ now: Duration) -> Bool {
        let processes = run.usage.processes
        guard processes > 0, let sampledAt = run.sampledAt else { return true }
        let age = run.launchedAt.map { sampledAt - $0 } ?? .seconds(1)
        return now - sampledAt >= max(min(age, .seconds(1)), .milliseconds(Int64(processes)))
    }
}

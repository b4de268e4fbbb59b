// SPDX-License-Identifier: Apache-2.0

import Archives
package import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
package import Store
import Varlink

/// The settings of apps: what they were set to, the files that have them, and that apps are told.
///
/// A change is in the store's journal before anything follows from it, together with what the app knew before. Then, in
/// this order: it is on the disk, the file is in place, sockets and runs follow, the app is told. Whatever of this a torpord
/// that was killed has not done the next one does, since the store says what an app does not know yet.
package final class Settings: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var values: [AppID: SettingValues] = [:]
    /// It is known what they were set to.
    private(set) var isLoaded = false
    private var afterLoad: [() -> Void] = []
    /// Writes files, one after the other.
    let files: BackgroundWorker
    /// What stands in addresses of sockets, for the next torpord: it has to know which sockets are whose before it has
    /// read anything.
    private lazy var kept = PersistedBytes(supervisor, log, named: DescriptorName.settings, most: 1 << 20)
    /// Changes that are not answered yet.
    var underWay: [AppID: Int] = [:]
    /// When an event told of changes that an app made of its own, and how many came since.
    var ownChanges: [AppID: (toldAt: Duration, untold: Int)] = [:]
    /// What was said of values that do not count.
    private var toldMisfits: [AppID: Set<String>] = [:]

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        files = BackgroundWorker(supervisor.loop, named: "settings")
    }

    /// What was set of an app.
    package func values(of app: AppRuntime) -> SettingValues { values[app.id] ?? SettingValues() }

    /// The value of a setting as a word; nil where it has none.
    private func word(_ name: String, _ specification: AppSpecification, _ values: SettingValues) -> String? {
        guard let setting = specification.setting(name) else { return nil }
        return values.effective(setting).map { setting.value($0).text }
    }

    // MARK: The beginning

    /// Before apps are taken over: which addresses their sockets have.
    func takeOver() {
        let known = kept.bytes.flatMap { try? JSON.parse($0) }?.objectValue
        for app in apps where app.specification.hasSocketTemplates {
            guard let words = known?[app.name]?.objectValue else {
                app.awaitsSettings = true
                continue
            }
            app.specification.fillSockets { words[$0]?.stringValue }
        }
    }

    /// What the store has, after the mail that it has.
    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        for row in contents.settings.values {
            guard let id = coordinator.id(of: row.key.app) else { continue }
            values[id, default: SettingValues()].load(row)
        }
        for app in apps {
            if app.awaitsSettings {
                // The keeper was lost as well: what the store has is what a run of the app was given, as far as anybody knows.
                app.awaitsSettings = false
                let values = values(of: app)
                app.specification.fillSockets { word($0, app.specification, values) }
            }
            guard !app.specification.declaredSettings.isEmpty else { continue }
            for (names, until) in supervisor.mailboxes.settingsBeingTold(to: app) { markTold(names, until: until, app) }
            fillSockets(app)
            reportMisfits(app)
            // The torpord before this one may have been killed before it had told, or written, anything.
            if !values(of: app).untold(app.specification.declaredSettings).isEmpty { writeAndFollow(app) }
        }
        keep()
        for body in afterLoad { body() }
        afterLoad = []
    }

    /// Does something when it is known what was set; at once, but in the first moments of a supervisor.
    package func whenLoaded(_ body: @escaping () -> Void) {
        if isLoaded { body() } else { afterLoad.append(body) }
    }

    /// Has everything saved again: the file that had it was lost.
    func keepAll() {
        for app in apps { supervisor.store.save(Array(values(of: app).rows.values), of: app.name) }
    }

    // MARK: What follows from a change

    /// Puts the files in place, then has all follow that has not yet. `completion`: why the files are not in place.
    func writeAndFollow(
        _ app: AppRuntime,
        reverted: Set<String> = [],
        _ completion: @escaping (String?) -> Void = { _ in }
    ) {
        files.ask({ [files = files(of: app)] in files.write() }) { [weak self, weak app] problem in
            guard let self, let app, self.coordinator.exists(app.id), self.apps[app.id] === app else {
                return completion(problem)
            }
            if let problem { self.note(app, .settingsNotTaken, text: problem) }
            self.follow(app, reverted: reverted)
            completion(problem)
        }
    }

    private func follow(_ app: AppRuntime, reverted: Set<String>) {
        fillSockets(app)
        keep()
        tell(app, reverted)
        let untold = values(of: app).untold(app.specification.declaredSettings)
        guard untold.contains(where: \.restart) else { return }
        if coordinator.machine(app.id).isAlive {
            replace(app)
        }
    }

    /// It works for somebody else now: what it and the scenes inside it showed before is nobody's business.
    private func discardSnapshots(of app: AppRuntime) {
        supervisor.snapshots.discardForIdentity(of: app)
        guard app.specification.innerScenes != nil else { return }
        for session in supervisor.innerScenes.sessions(of: app) {
            supervisor.snapshots.declineSnapshot(of: app, scene: session.name)
        }
    }

    private func tell(_ app: AppRuntime, _ reverted: Set<String>) {
        let untold = values(of: app).untold(app.specification.declaredSettings).filter(\.isTold)
        for message in [Message.identityDidChange, .settingsDidChange] {
            let names = untold.filter { $0.identity == (message == .identityDidChange) }.map(\.name)
            if message == .identityDidChange, !names.isEmpty { discardSnapshots(of: app) }
            if hears(app, message) {
                supervisor.mailboxes.tellSettings(names, reverted: reverted, as: message, app)
            } else {
                // Nobody is to be told: it is as if it knew.
                markTold(names, app)
            }
        }
    }

    /// The app is being told, or nobody is told any more.
    func told(_ mail: Mail, _ app: AppRuntime) { markTold(Mailboxes.settings(in: mail), until: mail.lastAt, app) }

    private func markTold(_ names: [String], until: Int64 = .max, _ app: AppRuntime) {
        guard let rows = values[app.id]?.told(names, until: until), !rows.isEmpty else { return }
        supervisor.store.save(rows, of: app.name)
    }

    /// A run begins with what is set now: what only a launch tells of is told.
    func launches(_ app: AppRuntime) {
        guard values[app.id] != nil else { return }
        markTold(app.specification.declaredSettings.filter { !$0.isTold }.map(\.name), app)
    }

    /// Ends the run, which has old values, and launches the app again.
    private func replace(_ app: AppRuntime) {
        let changes = apps.filter { !coordinator.isLeaving($0.id) }.map { other in
            var change = AppChange(AppDefinition(other.next ?? other.specification))
            change.liveRules = other.specification.rules
            change.isReplaced = other === app
            return change
        }
        do throws(DependencyError) {
            let actions = try coordinator.reconfigure(changes, now: loop.now)
            supervisor.writeAhead(actions)
            engine.performWritten(actions)
        } catch {
            log.error("\(app.name) is not launched again for its settings: \(error)")
        }
    }

    // MARK: Sockets

    /// The specification with the addresses that follow from what is set.
    package func filled(_ specification: AppSpecification, of app: AppRuntime?) -> AppSpecification {
        guard specification.hasSocketTemplates else { return specification }
        var result = specification
        let values = app.map { self.values(of: $0) } ?? SettingValues()
        result.fillSockets { self.word($0, specification, values) }
        return result
    }

    /// A check whether the app is ready, at the address that follows from what is set.
    func filled(_ probe: Probe, of app: AppRuntime) -> Probe {
        let values = values(of: app)
        return probe.filled { self.word($0, app.specification, values) } ?? probe
    }

    /// Binds the sockets where they are to be: those of an app that runs for its next launch.
    private func fillSockets(_ app: AppRuntime) {
        let next = app.next ?? app.specification
        let filled = filled(next, of: app)
        if filled.sockets != next.sockets {
            if coordinator.machine(app.id).isAlive {
                app.next = filled == app.specification ? nil : filled
            } else {
                app.specification = filled
                app.next = nil
            }
            record(app)
        }
        if next.hasSocketTemplates { supervisor.wakes.sockets.settingsChanged(app) }
    }

    /// What the next torpord has to know at once.
    private func keep() {
        var members: [JSONObject.Member] = []
        for app in apps where (app.next ?? app.specification).hasSocketTemplates {
            let specification = app.next ?? app.specification
            let names = Set(specification.sockets.compactMap(\.template?.text).flatMap(SettingTemplate.names))
            let values = values(of: app)
            let words = names.sorted().map { name in
                JSONObject.Member(name: name, value: .optional(word(name, specification, values)))
            }
            members.append(JSONObject.Member(name: app.name, value: .object(JSONObject(members: words))))
        }
        guard !members.isEmpty || kept.exists else { return }
        kept.keep(JSON.object(JSONObject(members: members)).serialised())
    }

    /// For the keeper.
    var held: [(name: String, descriptors: [Int32])] { kept.held }

    // MARK: Launches

    /// The files of the app, for a thread; nil where it has no settings.
    func filesAtLaunch(_ app: AppRuntime) -> SettingsFiles? {
        app.specification.declaredSettings.isEmpty ? nil : files(of: app)
    }

    private func files(of app: AppRuntime) -> SettingsFiles {
        let declared = app.specification.declaredSettings
        let values = values(of: app)
        let isThere = !declared.isEmpty
        return SettingsFiles(
            directory: supervisor.savedStates.stateDirectory(of: app),
            names: Account.Names(app.specification),
            content: isThere ? JSON.object(SettingsFiles.document(declared, values)).serialised() + [0x0a] : nil,
            variables: isThere && app.specification.settingsFormat == .env
                ? SettingsFiles.assignments(declared, values) : nil
        )
    }

    /// The specification with the values in `exec` and `environment`. A variable whose setting has no value is left out.
    func launched(_ app: AppRuntime) throws(LaunchError) -> AppSpecification {
        let specification = app.specification
        guard !specification.declaredSettings.isEmpty, !specification.settingsAtLaunch.isEmpty else {
            return specification
        }
        var result = specification
        let values = values(of: app)
        result.exec = try filled(specification.exec, of: app)
        result.environment = specification.environment.compactMapValues { value in
            try? SettingTemplate.fill(value) { self.word($0, specification, values) }
        }
        return result
    }

    /// A command of the configuration with the values in it.
    func filled(_ command: [String], of app: AppRuntime) throws(LaunchError) -> [String] {
        let values = values(of: app)
        do throws(MissingSetting) {
            return try command.map { word throws(MissingSetting) in
                try SettingTemplate.fill(word) { self.word($0, app.specification, values) }
            }
        } catch {
            throw LaunchError(
                "needs the setting \(error.name), which has no value: "
                    + "‘torpor settings \(app.name) \(error.name)=VALUE’ sets it"
            )
        }
    }

    // MARK: The configuration

    /// Other declarations are in force.
    func declarationsChanged(_ app: AppRuntime, from old: [SettingDeclaration]) {
        guard isLoaded else { return }
        let declared = app.specification.declaredSettings
        var changing = values(of: app)
        let rows = changing.redeclare(from: old, to: declared, of: app.name, at: Clock.realtimeMicroseconds())
        if !rows.isEmpty {
            values[app.id] = changing
            supervisor.store.save(rows, of: app.name)
        }
        reportMisfits(app)
        writeAndFollow(app)
    }

    private func reportMisfits(_ app: AppRuntime) {
        let values = values(of: app)
        var misfits: Set<String> = []
        for setting in app.specification.declaredSettings {
            guard let problem = values.problem(setting) else { continue }
            misfits.insert(setting.name)
            guard toldMisfits[app.id]?.contains(setting.name) != true else { continue }
            note(
                app,
                .settingsNotTaken,
                text: "its setting \(setting.name) is treated as unset: its value \(problem)"
            )
        }
        toldMisfits[app.id] = misfits.isEmpty ? nil : misfits
    }

    package func forget(_ app: AppRuntime) {
        values[app.id] = nil
        underWay[app.id] = nil
        ownChanges[app.id] = nil
        toldMisfits[app.id] = nil
        guard !app.specification.declaredSettings.isEmpty else { return }
        let files = SettingsFiles(
            directory: supervisor.savedStates.stateDirectory(of: app),
            names: nil,
            content: nil,
            variables: nil
        )
        self.files.ask({ files.write() }) { [weak self] problem in
            if let problem { self?.log.warning("cannot remove old settings: \(problem)") }
        }
    }
}

extension AppSpecification {
    /// Gives its sockets the addresses that follow from the values; those that have none stay.
    fileprivate mutating func fillSockets(_ value: (String) -> String?) {
        for index in sockets.indices { if let filled = sockets[index].filled(value) { sockets[index] = filled } }
    }
}

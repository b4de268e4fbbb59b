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

/// The settings of apps: their values, the files that contain them, and how apps learn of changes.
///
/// A change is first written to the store's journal, together with the old value, which the app still knows. These
/// steps follow: the store writes the change to disk, the settings file is written, sockets are updated, and the app is
/// told of the change or launched again. If torpord is killed before the last step, the next torpord completes the
/// remaining steps, because the store contains which changes an app does not know yet.
package final class Settings: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var values: [AppID: SettingValues] = [:]
    /// Whether the stored values are loaded.
    private(set) var isLoaded = false
    /// A thread that writes files, one after the other.
    let files: BackgroundWorker
    /// The values of settings that are part of socket addresses, stored for the next torpord. The next torpord needs
    /// them before it has read the store, because it must find out which app each inherited socket belongs to.
    private lazy var kept = PersistedBytes(supervisor, log, named: DescriptorName.settings, most: 1 << 20)
    /// The number of requests to change each app's settings that were not answered yet.
    var underWay: [AppID: Int] = [:]
    /// For each app that changes its own settings: the time at which an event last reported such changes, and the
    /// number of changes since then.
    var ownChanges: [AppID: (toldAt: Duration, untold: Int)] = [:]
    /// Apps whose stored values were not checked yet after the start.
    private var unchecked: [AppID] = []
    /// The settings whose invalid values were reported already, so that each is reported once.
    private var toldMisfits: [AppID: Set<String>] = [:]

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        files = BackgroundWorker(supervisor.loop, named: "settings")
    }

    /// The values that were set for an app.
    package func values(of app: AppRuntime) -> SettingValues { values[app.id] ?? SettingValues() }

    /// The value of a setting as text; nil if the setting has no value.
    private func word(_ name: String, _ specification: AppSpecification, _ values: SettingValues) -> String? {
        guard let setting = specification.setting(name) else { return nil }
        return values.effective(setting).map { setting.value($0).text }
    }

    // MARK: The beginning

    /// Fills the stored values of settings into the addresses of sockets. Called before apps are taken over, because
    /// inherited sockets are found by their addresses.
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

    /// Loads the stored values. Call it only after the stored mail was loaded.
    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        take(contents)
        for app in apps {
            if app.awaitsSettings {
                // The stored addresses were lost together with torpor-keeper. Assume that the app was launched with the
                // values that are in the store.
                app.awaitsSettings = false
                let values = values(of: app)
                app.specification.fillSockets { word($0, app.specification, values) }
            }
            goOn(app)
        }
        keep()
    }

    /// Loads the stored values of an app that was not in the configuration when the store was read.
    package func load(_ contents: StoreContents, of app: AppRuntime) {
        take(contents)
        goOn(app)
        keep()
    }

    private func take(_ contents: StoreContents) {
        for row in contents.settings.values {
            guard let id = coordinator.id(of: row.key.app) else { continue }
            values[id, default: SettingValues()].load(row)
        }
    }

    /// Completes changes of the app's settings that an earlier torpord has begun.
    private func goOn(_ app: AppRuntime) {
        guard !app.specification.declaredSettings.isEmpty else { return }
        for (names, until) in supervisor.mailboxes.settingsBeingTold(to: app) { markTold(names, until: until, app) }
        fillSockets(app)
        checkSoon(app)
        // If the app does not know all changes, an earlier torpord may have been killed before it wrote the settings
        // file or told the app.
        if !values(of: app).untold(app.specification.declaredSettings).isEmpty { writeAndFollow(app) }
    }

    /// Saves all values again, because the store's file was lost.
    func keepAll() {
        for app in apps { supervisor.store.save(Array(values(of: app).rows.values), of: app.name) }
    }

    // MARK: What follows from a change

    /// Writes the files, then updates everything that depends on them. `completion` gets nil, or the reason why the
    /// files could not be written.
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

    /// Discards snapshots of the app and of the scenes inside it, because the app now works for another user, who must
    /// not see them.
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
                // The app cannot receive this message, so it cannot be told. Record the changes as known.
                markTold(names, app)
            }
        }
    }

    /// Called when the delivery of mail about settings begins, or the mail was removed. From then on, the app counts as
    /// knowing these settings.
    func told(_ mail: Mail, _ app: AppRuntime) { markTold(Mailboxes.settings(in: mail), until: mail.lastAt, app) }

    private func markTold(_ names: [String], until: Int64 = .max, _ app: AppRuntime) {
        guard let rows = values[app.id]?.told(names, until: until), !rows.isEmpty else { return }
        supervisor.store.save(rows, of: app.name)
    }

    /// Called when an app is launched with the current values of its settings. Records that the app knows those
    /// settings whose changes it gets only at a launch.
    func launches(_ app: AppRuntime) {
        guard values[app.id] != nil else { return }
        markTold(app.specification.declaredSettings.filter { !$0.isTold }.map(\.name), app)
    }

    /// Ends the app, which runs with old values of its settings, and launches it again.
    private func replace(_ app: AppRuntime) {
        do throws(DependencyError) {
            try supervisor.replace(app)
        } catch {
            log.error("\(app.name) is not launched again for its settings: \(error)")
        }
    }

    // MARK: Sockets

    /// The specification with the values of settings in the addresses of its sockets.
    package func filled(_ specification: AppSpecification, of app: AppRuntime?) -> AppSpecification {
        guard specification.hasSocketTemplates else { return specification }
        var result = specification
        let values = app.map { self.values(of: $0) } ?? SettingValues()
        result.fillSockets { self.word($0, specification, values) }
        return result
    }

    /// A readiness probe whose address contains the values of settings.
    func filled(_ probe: Probe, of app: AppRuntime) -> Probe {
        let values = values(of: app)
        return probe.filled { self.word($0, app.specification, values) } ?? probe
    }

    /// Applies the settings to the addresses of the app's sockets. If the app runs, it gets changed sockets at its next
    /// launch.
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

    /// Stores, for the next torpord, the settings whose values are part of socket addresses. The next torpord needs
    /// them before it has read the store.
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

    /// The descriptors that torpor-keeper holds for the settings.
    var held: [(name: String, descriptors: [Int32])] { kept.held }

    // MARK: Launches

    /// The files with the app's settings, to be written on a background thread; nil if the app has no settings.
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

    /// The app's specification with the values of settings in `exec` and `environment`. A variable is left out if its
    /// setting has no value. Throws if a setting in `exec` has no value.
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
        result.presentation.language = specification.presentation.language.flatMap { language in
            try? SettingTemplate.fill(language) { self.word($0, specification, values) }
        }
        return result
    }

    /// A command from the configuration, with the values of settings filled in. Throws if a setting has no value.
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

    /// Applies changed declarations of settings from a new configuration.
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

    /// Checks the app's stored values later, in a turn of the event loop of its own. Patterns may take some
    /// milliseconds for each app, and checking all apps together would block the start.
    private func checkSoon(_ app: AppRuntime) {
        guard !values(of: app).rows.isEmpty else { return }
        unchecked.append(app.id)
        if unchecked.count == 1 { checkLater() }
    }

    private func checkLater() {
        supervisor.loop.later { [weak self] in
            guard let self, let id = self.unchecked.popLast() else { return }
            if self.coordinator.exists(id) { self.reportMisfits(self.apps[id]) }
            if !self.unchecked.isEmpty { self.checkLater() }
        }
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
    /// Fills the values of settings into the addresses of the app's sockets. If a setting in an address has no value,
    /// the socket keeps its address.
    fileprivate mutating func fillSockets(_ value: (String) -> String?) {
        for index in sockets.indices { if let filled = sockets[index].filled(value) { sockets[index] = filled } }
    }
}

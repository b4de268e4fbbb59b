// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Store
package import TorporAPI
package import Varlink

/// A sentence that says why settings were not changed.
package struct SettingsRefusal: Error, CustomStringConvertible {
    package let description: String
    package let reason: AppInterface.FailureReason?

    init(_ description: String, _ reason: AppInterface.FailureReason? = nil) {
        (self.description, self.reason) = (description, reason)
    }
}

/// Changes settings, and lists them.
extension Settings {
    /// The most changes of one app's settings that may wait for the disk.
    private static let mostUnderWay = 64
    /// Changes that an app makes to its own settings are reported by an event at most once in this time.
    private static let ownChangesAfter = Duration.seconds(60)

    /// Changes the settings: either all of them or none. `completion` is called when the change is on disk and in the
    /// app's settings file, or with the reason why nothing was changed.
    ///
    /// - Parameter isApp: whether the request comes from the app itself. An app may change only `writable` settings,
    ///   and need not be told of the change.
    package func set(
        _ request: SetSettingsRequest,
        of app: AppRuntime,
        by person: String,
        isApp: Bool = false,
        _ completion: @escaping (Result<SetSettingsReply, SettingsRefusal>) -> Void
    ) {
        guard isLoaded else {
            return supervisor.persistence.whenLoaded { [weak self] in
                self?.set(request, of: app, by: person, isApp: isApp, completion)
            }
        }
        let changes: [(name: String, value: String?)]
        do throws(SettingsRefusal) {
            changes = try checked(request, app, isApp: isApp)
        } catch {
            return completion(.failure(error))
        }
        guard underWay[app.id] ?? 0 < Self.mostUnderWay else {
            let count = Self.mostUnderWay
            return completion(.failure(SettingsRefusal("\(count) changes of \(app.name) wait for the disk: retry")))
        }
        let before = values(of: app)
        var changing = before
        let now = Clock.realtimeMicroseconds()
        var rows = changing.set(changes, of: app.name, at: now)
        guard allFit(changing, app, completion) else { return }
        let names = rows.map(\.key.name)
        let reverted = Set(rows.filter(\.isTold).map(\.key.name))
        if isApp {
            // The app knows the new values already. Mark them as known before they are stored, so that each row is
            // stored only once.
            let known = changing.told(names)
            rows = rows.map { row in known.first { $0.key == row.key } ?? row }
        }
        values[app.id] = changing.rows.isEmpty ? nil : changing
        if !rows.isEmpty { supervisor.store.save(rows, of: app.name) }
        underWay[app.id, default: 0] += 1
        supervisor.store.sync { [weak self, weak app] problem in
            guard let self, let app, self.apps.contains(where: { $0 === app }) else {
                return completion(.failure(SettingsRefusal("the app was removed before the change was stored")))
            }
            if let problem {
                self.finished(app)
                self.goBack(to: before, rows, app)
                return completion(
                    .failure(SettingsRefusal("nothing is changed: it cannot be stored (\(problem))"))
                )
            }
            if !names.isEmpty { self.noteChange(of: names, app, by: person, isApp: isApp) }
            self.writeAndFollow(app, reverted: reverted) { [weak self, weak app] problem in
                guard let self, let app else { return }
                self.finished(app)
                if let problem {
                    return completion(
                        .failure(SettingsRefusal("it is stored and takes effect at the next launch, but \(problem)"))
                    )
                }
                completion(.success(SetSettingsReply(changed: names, message: self.effect(of: names, app))))
            }
        }
    }

    /// Reports which settings were changed and by whom. Never reports the values, because many clients can read events.
    ///
    /// If an app changes its own settings very often, only some of the changes are reported, because all apps share the
    /// limited history of events.
    private func noteChange(of names: [String], _ app: AppRuntime, by person: String, isApp: Bool) {
        var text = "\(Self.list(names)) changed"
        if isApp {
            let known = ownChanges[app.id]
            if let known, loop.now - known.toldAt < Self.ownChangesAfter {
                ownChanges[app.id] = (known.toldAt, known.untold + 1)
                return
            }
            if let untold = known?.untold, untold > 0 { text += ", after \(untold) more changes of its own" }
            ownChanges[app.id] = (loop.now, 0)
        }
        note(app, .settingsChanged, text: text, reason: person)
    }

    private func finished(_ app: AppRuntime) {
        let left = (underWay[app.id] ?? 1) - 1
        underWay[app.id] = left > 0 ? left : nil
    }

    private func goBack(to before: SettingValues, _ rows: [StoredSetting], _ app: AppRuntime) {
        guard var now = values[app.id] ?? Optional(SettingValues()) else { return }
        let old = now.restore(before, rows, at: Clock.realtimeMicroseconds())
        values[app.id] = now.rows.isEmpty ? nil : now
        supervisor.store.save(old, of: app.name)
    }

    private static func list(_ names: [String]) -> String {
        let shown = names.prefix(10).joined(separator: ", ")
        return names.count > 10 ? "\(shown) and \(names.count - 10) more settings" : shown
    }

    /// The changes, with their values in normal form. Throws the reason if one of them is not permitted or is invalid.
    private func checked(
        _ request: SetSettingsRequest,
        _ app: AppRuntime,
        isApp: Bool
    ) throws(SettingsRefusal) -> [(name: String, value: String?)] {
        let declared = app.specification.declaredSettings
        guard !declared.isEmpty || !request.unset.isEmpty else { throw Self.noSettings(app) }
        var changes: [(name: String, value: String?)] = []
        var seen: Set<[UInt8]> = []
        func once(_ name: String) throws(SettingsRefusal) {
            guard seen.insert(Array(name.utf8)).inserted else {
                throw SettingsRefusal("\(name) is given twice: name each setting once", .invalid)
            }
        }
        for value in request.values {
            let setting = try setting(value.key, app, isApp: isApp)
            try once(setting.name)
            do throws(SettingProblem) {
                changes.append((setting.name, try values(of: app).checks.normal(value.text, setting)))
            } catch {
                throw SettingsRefusal("\(setting.name) \(error)", .invalid)
            }
        }
        for name in request.unset {
            // A setting that is no longer declared may still have a stored value. Such a setting may be unset, but not
            // set.
            let isKept = !isApp && values(of: app).rows[name] != nil
            if !isKept { _ = try setting(name, app, isApp: isApp) }
            try once(name)
            changes.append((name, nil))
        }
        return changes
    }

    private func setting(_ name: String, _ app: AppRuntime, isApp: Bool) throws(SettingsRefusal) -> SettingDeclaration {
        guard let setting = app.specification.setting(name) else {
            let declared = app.specification.declaredSettings.map(\.name)
            guard !declared.isEmpty else { throw Self.noSettings(app) }
            let shown = Self.short(name)
            if let nearest = Nearest.name(to: name, among: declared) {
                throw SettingsRefusal("\(app.name) has no setting \(shown); did you mean \(nearest)?", .unknown)
            }
            let all = declared.prefix(20).joined(separator: ", ")
            throw SettingsRefusal(
                "\(app.name) has no setting \(shown): it has \(all)\(declared.count > 20 ? " …" : "")",
                .unknown
            )
        }
        if isApp, !setting.writable {
            throw SettingsRefusal("the app may not set \(name): its declaration needs writable = true", .notPermitted)
        }
        return setting
    }

    private static func noSettings(_ app: AppRuntime) -> SettingsRefusal {
        SettingsRefusal(
            "\(app.name) has no settings: declare them under [apps.\(app.specification.template).settings]",
            .unknown
        )
    }

    private static func short(_ name: String) -> String {
        let safe = name.unicodeScalars.prefix(64).map { $0.properties.generalCategory == .control ? "?" : $0 }
        return String(String.UnicodeScalarView(safe))
    }

    /// Whether all sockets and the readiness probe of the app still have valid addresses with these values. If not,
    /// `completion` gets the refusal.
    private func allFit(
        _ values: SettingValues,
        _ app: AppRuntime,
        _ completion: (Result<SetSettingsReply, SettingsRefusal>) -> Void
    ) -> Bool {
        let specification = app.next ?? app.specification
        func word(_ name: String) -> String? {
            specification.setting(name).flatMap { setting in values.effective(setting).map { setting.value($0).text } }
        }
        if let probe = specification.templateProbe, probe.filled(word) == nil {
            let sentence = "the readiness check of \(app.name) (\(probe.template ?? "")) would have no address"
            completion(.failure(SettingsRefusal(sentence, .invalid)))
            return false
        }
        for socket in specification.sockets {
            guard let template = socket.template else { continue }
            if socket.filled(word) == nil {
                let sentence = "the socket \(socket.name) of \(app.name) (\(template.text)) would have no address"
                completion(.failure(SettingsRefusal(sentence, .invalid)))
                return false
            }
        }
        return true
    }

    /// A sentence that says when the running app gets the change; nil if nothing has changed or the app does not run.
    private func effect(of names: [String], _ app: AppRuntime) -> String? {
        guard !names.isEmpty else { return nil }
        let machine = coordinator.machine(app.id)
        guard machine.isAlive else { return nil }
        let settings = names.compactMap { app.specification.setting($0) }
        if settings.contains(where: \.restart) { return "\(app.name) is restarted with it" }
        let specification = app.next ?? app.specification
        let atLaunch = names.filter(specification.settingsAtLaunch.contains)
        let isHeard = settings.contains { hears(app, $0.identity ? .identityDidChange : .settingsDidChange) }
        if !atLaunch.isEmpty {
            let verb = atLaunch.count == 1 ? "takes effect" : "take effect"
            return "\(Self.list(atLaunch)) \(verb) at the next launch of \(app.name): ‘torpor restart \(app.name)’"
        }
        if isHeard { return machine.state == .suspended ? "\(app.name) is told when it wakes" : "\(app.name) is told" }
        if specification.settingsAtFailure.isSuperset(of: names) {
            return "\(Self.list(names)) \(names.count == 1 ? "is" : "are") for the next command of on_failure"
        }
        return "\(app.name) is not told: it has no delegate, and no signal for settingsDidChange"
    }

    // MARK: Views

    /// The app's settings, in the form for operators.
    package func infos(of app: AppRuntime) -> [SettingInfo] {
        let values = values(of: app)
        return app.specification.declaredSettings.map { setting in
            let text = setting.isSecret ? nil : values.effective(setting)
            var info = SettingInfo(
                key: setting.name,
                type: setting.kind.word,
                isSet: values.isSet(setting),
                value: text.map { setting.value($0).json } ?? .null,
                text: text
            )
            info.defaultText = setting.defaultValue
            info.changedAt = values.rows[setting.name]?.at
            (info.title, info.titles) = (setting.title, setting.titles)
            (info.help, info.helps) = (setting.help, setting.helps)
            if case .choice(let words) = setting.kind { info.choices = words }
            (info.restart, info.identity, info.writable) = (setting.restart, setting.identity, setting.writable)
            info.trouble = values.problem(setting)?.description
            return info
        }
    }

    /// The names of the settings with invalid values, in the order of their declarations.
    package func unfit(of app: AppRuntime) -> [String] {
        guard !app.specification.declaredSettings.isEmpty else { return [] }
        let values = values(of: app)
        return app.specification.declaredSettings.filter { values.problem($0) != nil }.map(\.name)
    }

    /// The app's settings as a JSON object that maps each name to the value that the app gets.
    package func document(of app: AppRuntime) -> JSON {
        .object(SettingsFiles.document(app.specification.declaredSettings, values(of: app)))
    }
}

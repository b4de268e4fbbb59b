// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Store

/// What the settings of one app were set to, and which of that it has not been told: a value without I/O.
package struct SettingValues {
    /// By name; also of settings that the configuration no longer has.
    package private(set) var rows: [String: StoredSetting] = [:]

    /// None is set.
    package init() {}

    mutating func load(_ row: StoredSetting) { rows[row.key.name] = row }

    /// What counts of a value that was set: nil where the declaration does not take it, as if it were not set.
    private static func usable(_ value: String?, _ setting: SettingDeclaration) -> String? {
        value.flatMap { value in try? setting.normal(value) }
    }

    /// The value in its normal form: the one that was set, or the default; nil where there is neither.
    package func effective(_ setting: SettingDeclaration) -> String? {
        Self.usable(rows[setting.name]?.value, setting) ?? setting.defaultValue
    }

    /// Whether a value is set that counts.
    package func isSet(_ setting: SettingDeclaration) -> Bool { Self.usable(rows[setting.name]?.value, setting) != nil }

    /// Why the value that is set does not count; nil where it does, or where none is set.
    package func problem(_ setting: SettingDeclaration) -> SettingProblem? {
        guard let value = rows[setting.name]?.value else { return nil }
        do throws(SettingProblem) {
            _ = try setting.normal(value)
            return nil
        } catch {
            // It may have been a secret when it was set, or be one now.
            return setting.isSecret ? SettingProblem.unfitting : error
        }
    }

    /// Sets and unsets some; gives the rows that changed. `at` in microseconds since 1970.
    mutating func set(_ changes: [(name: String, value: String?)], of app: String, at: Int64) -> [StoredSetting] {
        var changed: [StoredSetting] = []
        for (name, value) in changes {
            var row = rows[name] ?? StoredSetting(app: app, name: name, value: nil, at: at)
            guard !Self.isSame(row.value, value) else { continue }
            if row.isTold {
                row.known = row.value
                row.isTold = false
            }
            row.value = value
            row.at = at
            if Self.isSame(row.known, value) { Self.take(&row) }
            rows[name] = row.isNothing ? nil : row
            changed.append(row)
        }
        return changed
    }

    /// Other declarations are in force: of a setting that has its default before and after, the app knows the old one. Gives the
    /// rows that changed. `at` in microseconds since 1970.
    mutating func redeclare(
        from old: [SettingDeclaration],
        to new: [SettingDeclaration],
        of app: String,
        at: Int64
    ) -> [StoredSetting] {
        var changed: [StoredSetting] = []
        for setting in new {
            guard let was = old.first(where: { $0.name.utf8.elementsEqual(setting.name.utf8) }),
                !isSet(was), !isSet(setting), !Self.isSame(was.defaultValue, setting.defaultValue)
            else { continue }
            var row = rows[setting.name] ?? StoredSetting(app: app, name: setting.name, value: nil, at: at)
            // What it was told last counts; where there is no such thing, it has the old default.
            guard row.isTold, row.value == nil else { continue }
            row.known = was.defaultValue
            row.isTold = false
            row.at = at
            rows[setting.name] = row
            changed.append(row)
        }
        return changed
    }

    /// Goes back to what there was; gives the rows to be kept. Whoever asks has looked that nothing was set since.
    mutating func restore(_ before: SettingValues, _ changed: [StoredSetting], at: Int64) -> [StoredSetting] {
        changed.compactMap { row in
            guard rows[row.key.name] == (row.isNothing ? nil : row) else { return nil }
            var old =
                before.rows[row.key.name] ?? StoredSetting(app: row.key.app, name: row.key.name, value: nil, at: at)
            if old.isNothing { Self.take(&old) }
            rows[row.key.name] = before.rows[row.key.name]
            return old
        }
    }

    private static func take(_ row: inout StoredSetting) {
        row.isTold = true
        row.known = nil
    }

    private static func isSame(_ one: String?, _ other: String?) -> Bool {
        switch (one, other) {
        case (nil, nil): true
        case (let one?, let other?): one.utf8.elementsEqual(other.utf8)
        case (nil, _?), (_?, nil): false
        }
    }

    /// The settings whose value is another than the app knows, in the order of their declarations.
    package func untold(_ declared: [SettingDeclaration]) -> [SettingDeclaration] {
        guard !rows.isEmpty else { return [] }
        return declared.filter { setting in
            guard let row = rows[setting.name], !row.isTold else { return false }
            return !Self.isSame(Self.usable(row.known, setting) ?? setting.defaultValue, effective(setting))
        }
    }

    /// The app has been told of these, as they were at that time; gives the rows that changed.
    mutating func told(_ names: some Sequence<String>, until: Int64 = .max) -> [StoredSetting] {
        var changed: [StoredSetting] = []
        for name in names {
            guard var row = rows[name], !row.isTold, row.at <= until else { continue }
            Self.take(&row)
            rows[name] = row.isNothing ? nil : row
            changed.append(row)
        }
        return changed
    }
}

extension SettingDeclaration {
    /// Whether a message tells of it. Of others the next launch does.
    var isTold: Bool { !restart || identity }
}

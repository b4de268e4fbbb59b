// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Store

/// The values of one app's settings, and the changes that the app was not told of yet. Does no I/O.
package struct SettingValues {
    /// The stored rows, by the name of the setting. They include settings that are no longer in the configuration.
    package private(set) var rows: [String: StoredSetting] = [:]
    /// The results of checks of values, so that a value is not checked twice. Copies of this struct share the results.
    let checks = SettingChecks()

    package init() {}

    mutating func load(_ row: StoredSetting) { rows[row.key.name] = row }

    /// The normal form of a value. Nil if the declaration does not allow the value: the setting then counts as not set.
    private func usable(_ value: String?, _ setting: SettingDeclaration) -> String? {
        value.flatMap { value in try? checks.normal(value, setting) }
    }

    /// The setting's value in its normal form: the value that was set, or otherwise the default; nil if there is
    /// neither.
    package func effective(_ setting: SettingDeclaration) -> String? {
        usable(rows[setting.name]?.value, setting) ?? setting.defaultValue
    }

    /// Whether a valid value is set.
    package func isSet(_ setting: SettingDeclaration) -> Bool { usable(rows[setting.name]?.value, setting) != nil }

    /// Why the stored value of the setting is invalid; nil if it is valid or there is none.
    package func problem(_ setting: SettingDeclaration) -> SettingProblem? {
        guard let value = rows[setting.name]?.value else { return nil }
        do throws(SettingProblem) {
            _ = try checks.normal(value, setting)
            return nil
        } catch {
            // The error may quote the value. If the setting is a secret, return an error that does not.
            return setting.isSecret ? SettingProblem.unfitting : error
        }
    }

    /// Sets and unsets settings; returns the rows that changed. `at` is in microseconds since 1970.
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

    /// Applies new declarations of settings. If the default of a setting without a value has changed, the app still
    /// works with the old default, so records that the app was not told of this change. Returns the rows to store. `at`
    /// is in microseconds since 1970.
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
            // If the app was not told of an earlier change yet, `known` already contains the value that the app works
            // with.
            guard row.isTold, row.value == nil else { continue }
            row.known = was.defaultValue
            row.isTold = false
            row.at = at
            rows[setting.name] = row
            changed.append(row)
        }
        return changed
    }

    /// Restores the earlier values of these rows, except for rows that were set again in between. Returns the rows to
    /// store.
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

    /// The settings whose value differs from the value that the app knows, in the order of their declarations.
    package func untold(_ declared: [SettingDeclaration]) -> [SettingDeclaration] {
        guard !rows.isEmpty else { return [] }
        return declared.filter { setting in
            guard let row = rows[setting.name], !row.isTold else { return false }
            return !Self.isSame(usable(row.known, setting) ?? setting.defaultValue, effective(setting))
        }
    }

    /// Records that the app now knows the values that these settings had at the time `until` (microseconds since 1970).
    /// Returns the rows to store.
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

/// Caches the results of checks of values, because a check may have to match a pattern, and values are needed often. A
/// value is checked again only if the value or its declaration has changed.
final class SettingChecks {
    private struct Check {
        var kind: SettingDeclaration.Kind
        var value: String
        var result: Result<String, SettingProblem>
    }

    /// The most results that are kept for each setting. Three are enough: for the current value, for the previous value
    /// (which the app may still know), and for a value that is being set.
    private static let most = 3

    /// The latest results, by the name of the setting; the newest is the last.
    private var checks: [String: [Check]] = [:]
    /// The number of checks that were made; results from the cache do not count.
    private(set) var count = 0

    /// Returns the normal form of a value, like ``SettingDeclaration/normal(_:)``, but from the cache if possible.
    func normal(_ value: String, _ setting: SettingDeclaration) throws(SettingProblem) -> String {
        let known = checks[setting.name]?.first { check in
            check.value.utf8.elementsEqual(value.utf8) && check.kind == setting.kind
        }
        if let known { return try known.result.get() }
        count += 1
        let result: Result<String, SettingProblem>
        do throws(SettingProblem) {
            result = .success(try setting.normal(value))
        } catch {
            result = .failure(error)
        }
        var latest = checks[setting.name] ?? []
        if latest.count >= Self.most { latest.removeFirst() }
        latest.append(Check(kind: setting.kind, value: value, result: result))
        checks[setting.name] = latest
        return try result.get()
    }
}

extension SettingDeclaration {
    /// Whether a message tells the app when the setting changes. For other settings, the app gets a changed value only
    /// at its next launch.
    var isTold: Bool { !restart || identity }
}

// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Permissions
import WireText

/// Creates the apps from the drafts, and resolves the names of apps in `requires` and `after`.
struct Resolver {
    let system: ConfigurationSystem
    let userID: UInt32
    let drafts: [String: AppDraft]
    let keepAliveMinimum: Duration
    /// Paths that torpord itself uses: its folders, and the files of the configuration.
    let ownPaths: SandboxOwnPaths

    /// All apps, and all templates of scenes, both sorted by name.
    func apps() -> (apps: [AppSpecification], templates: [AppSpecification]) {
        let names = drafts.keys.sorted()
        var expanded: [String: [AppSpecification]] = [:]
        var folders: [String: [String]?] = [:]
        for name in names {
            guard let draft = drafts[name] else { continue }
            draft.check()
            checkAccounts(draft)
            checkKeepAlive(draft)
            let misplaced = MachineHints.checkDirectory(draft, system)
            let apps = draft.expanded()
            if let app = apps.first {
                MachineHints.checkIcon(app, draft, system, &folders)
                NeededFiles(app, draft, system, misplaced: misplaced)?.check()
                OpeningReader.check(app, draft)
                HeldPorts.check(app, draft)
                EarlySignals.check(app, draft)
                checkSandbox(app, draft)
                AnnouncementReader.check(app, draft)
                if app.scenes != nil || app.innerScenes != nil { SceneReader.check(app, draft) }
            }
            expanded[name] = apps
        }
        let instances = expanded.mapValues { $0.map(\.name) }
        var apps: [AppSpecification] = []
        var templates: [AppSpecification] = []
        var programs: Set<String> = []
        for name in names {
            guard let draft = drafts[name] else { continue }
            let requires = lookUp(draft, "requires", draft.dependencies.requires, instances)
            let after = lookUp(draft, "after", draft.dependencies.after, instances)
            for var app in expanded[name] ?? [] {
                if app.requires != requires { app.requires = requires }
                if app.after != after { app.after = after }
                // Apps that run the same program share the text of its path. Instances share all of their words.
                if app.instance == nil, let program = app.exec.first {
                    let (isNew, shared) = programs.insert(program)
                    // Texts that look the same may be paths of two files.
                    if !isNew, shared.utf8.elementsEqual(program.utf8) { app.exec[0] = shared }
                }
                if app.scenes == nil { apps.append(app) } else { templates.append(app) }
            }
        }
        reportCycles()
        SocketConflicts.check(apps + templates, self)
        ContainerConflicts.check(apps + templates, self)
        return (apps.sorted { ($0.template, $0.instance ?? 0) < ($1.template, $1.instance ?? 0) }, templates)
    }

    /// The maximum number of unknown names in one list that are reported one by one. With more, one long list would
    /// leave no room for the errors of other apps.
    private static let mostUnknown = 8

    /// Resolves `names` to names of apps. The name of an app with instances is replaced by the names of all its
    /// instances.
    private func lookUp(
        _ draft: AppDraft,
        _ key: String,
        _ names: [String],
        _ instances: [String: [String]]
    ) -> [String] {
        var found: [String] = []
        var unknown = 0
        for name in names {
            let template = Self.template(name)
            if drafts[template]?.specification.scenes != nil {
                draft.error(key, "\(quoted(template)) is a template of scenes, which no app can wait for")
                continue
            }
            if let all = instances[name] {
                found += all
            } else if instances[template]?.contains(name) == true {
                found.append(name)
            } else if let all = instances[template], template != name {
                let ends = [all.first, all.last].compactMap { $0 }.map(quoted).joined(separator: " to ")
                draft.error(key, "there is no instance \(quoted(name)): the instances are \(ends)")
            } else {
                unknown += 1
                guard unknown <= Self.mostUnknown else { continue }
                draft.missing(key, "there is no app \(quoted(name))" + draft.hint(name, among: drafts.keys))
            }
        }
        if unknown > Self.mostUnknown {
            draft.missing(key, "\(unknown - Self.mostUnknown) more names are not those of apps")
        }
        var seen: Set<String> = []
        return found.filter { seen.insert($0).inserted }
    }

    static func template(_ name: String) -> String {
        name.firstIndex(of: "@").map { String(name[..<$0]) } ?? name
    }

    private func checkSandbox(_ app: AppSpecification, _ draft: AppDraft) {
        // Make this check only for sandboxed apps that run as torpord's own user. An app of another user has no access
        // to torpord's own paths anyway.
        guard app.sandbox.mode != nil, app.user.map({ system.userID($0) == system.effectiveUserID }) ?? true else {
            return
        }
        ownPaths.check(app, draft)
    }

    private func checkAccounts(_ draft: AppDraft) {
        let app = draft.specification
        if let user = app.user {
            if let number = system.userID(user) {
                if userID != 0, number != userID {
                    draft.error(
                        "user",
                        "only root can run an app as \(quoted(user)): remove it, or run torpord as root"
                    )
                }
            } else {
                draft.warning("user", MissingAccount.sentence(user: user, "the app is not launched"))
            }
        }
        if let group = app.group { checkGroup(draft, "group", group) }
        for group in app.supplementaryGroups ?? [] { checkGroup(draft, "supplementary_groups", group) }
    }

    private func checkKeepAlive(_ draft: AppDraft) {
        guard let period = draft.specification.keepAlive else { return }
        if period < keepAliveMinimum {
            let least = Quantity.text(keepAliveMinimum)
            draft.error(
                "keep_alive",
                "must be at least \(least): write \(quoted(least)), or lower keep_alive_minimum of [supervisor]"
            )
        } else if !draft.specification.backgroundModes.contains(.voip) {
            draft.warning("keep_alive", "does nothing without background_modes = [\"voip\"]")
        }
    }

    private func checkGroup(_ draft: AppDraft, _ key: String, _ group: String) {
        guard let number = system.groupID(group) else {
            draft.warning(key, MissingAccount.sentence(group: group, "the app is not launched"))
            return
        }
        if userID != 0, number != system.effectiveGroupID {
            draft.error(
                key,
                "only root can give an app the group \(quoted(group)): remove it, or run torpord as root"
            )
        }
    }

    private func reportCycles() {
        var graph: [String: [String]] = [:]
        for (name, draft) in drafts {
            let (requires, after) = draft.dependencies
            // An app that waits for no other is in no cycle.
            if requires.isEmpty, after.isEmpty { continue }
            graph[name] = (requires + after).map(Self.template).filter { drafts[$0] != nil }
        }
        for cycle in DependencyCycles.find(graph) {
            guard let draft = drafts[cycle[0]] else { continue }
            let next = cycle.count > 1 ? cycle[1] : cycle[0]
            let isRequired = draft.dependencies.requires.contains { Self.template($0) == next }
            let names = (cycle + [cycle[0]]).joined(separator: " → ")
            draft.error(isRequired ? "requires" : "after", "the apps wait for each other: \(names)")
        }
    }
}

/// Warnings about a user or a group that does not exist. They are never errors, because the account may have been
/// removed, or a network directory may not list it yet. A missing account affects only one app, and must not prevent
/// the launch of other apps at the next boot. torpord looks up accounts again at each launch.
enum MissingAccount {
    static let noUser = "there is no user "
    static let noGroup = "there is no group "

    static func sentence(user: String, _ effect: String) -> String {
        "\(noUser)\(quoted(user)) on this machine: \(effect) until the user exists"
    }

    static func sentence(group: String, _ effect: String) -> String {
        "\(noGroup)\(quoted(group)) on this machine: \(effect) until the group exists"
    }
}

/// Finds apps that require themselves, directly or through other apps.
enum DependencyCycles {
    /// The cycles in the graph, at least one for each strongly connected component. Each cycle begins with the name
    /// that comes first in the alphabet.
    static func find(_ graph: [String: [String]]) -> [[String]] {
        enum Mark {
            case open
            case done
        }
        var marks: [String: Mark] = [:]
        var cycles: Set<[String]> = []
        for start in graph.keys.sorted() where marks[start] == nil {
            // Use an explicit stack instead of recursion, because a long chain of apps could overflow the thread's
            // stack.
            var path: [(name: String, next: Int)] = [(start, 0)]
            marks[start] = .open
            while let (name, next) = path.last {
                let targets = graph[name] ?? []
                guard next < targets.count else {
                    marks[name] = .done
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let target = targets[next]
                switch marks[target] {
                case nil:
                    marks[target] = .open
                    path.append((target, 0))
                case .open:
                    let begin = path.firstIndex { $0.name == target } ?? 0
                    cycles.insert(rotated(path[begin...].map(\.name)))
                case .done: break
                }
            }
        }
        return cycles.sorted { $0.lexicographicallyPrecedes($1) }
    }

    private static func rotated(_ cycle: [String]) -> [String] {
        guard let first = cycle.min(), let index = cycle.firstIndex(of: first) else { return cycle }
        return Array(cycle[index...] + cycle[..<index])
    }
}

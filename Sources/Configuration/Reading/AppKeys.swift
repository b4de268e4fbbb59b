// SPDX-License-Identifier: Apache-2.0

import Bundles
import Lifecycle
import Permissions

/// The readers of all keys of `[apps.NAME]` and `[defaults]`.
enum AppKeys {
    typealias AppKey = Key<AppDraft>

    static let all: [AppKey] =
        (program + start + stop + deadlines + background + events + memory + output + notices + connections + messages
        + ProtectionReader.app)
        .sorted {
            $0.name < $1.name
        }

    private static let program: [AppKey] = [
        .value("exec", \.specification.exec, Read.command),
        AppKey("bundle") { context, node, draft in
            // FileReader has already read `bundle` in the app's own table and stored the name in the draft. A different
            // name here comes from another table, such as `[defaults]`, in which the key is an error.
            guard let name = Read.text(context, node), draft.specification.bundle?.name != name else { return }
            do throws(BundleFault) { try BundleWord.checkName(name) } catch {
                return context.error(error.description, at: node.position)
            }
            context.error("stands in the table of an app, not here", at: node.position)
        },
        .optional("directory", \.specification.directory, Read.path),
        .optional("user", \.specification.user, Read.text),
        .optional("group", \.specification.group, Read.text),
        .optional("supplementary_groups", \.specification.supplementaryGroups, Read.texts),
        AppKey("environment") { context, node, draft in
            for (name, value) in TableReader.environment(context, node) {
                draft.specification.environment[name] = value
            }
        },
        .value("environment_file", \.specification.environmentFiles, TableReader.environmentFiles),
        .optional("umask", \.specification.umask, TableReader.umask),
        .optional("nice", \.specification.nice, Read.integer(-20...19)),
        AppKey("limits") { context, node, draft in
            for limit in TableReader.limits(context, node) {
                draft.specification.limits.removeAll { $0.name == limit.name }
                draft.specification.limits.append(limit)
            }
            draft.specification.limits.sort { $0.name < $1.name }
        },
        .value("tags", \.specification.tags, Read.texts),
        AppKey("title") { context, node, draft in
            TitleReader.read(context, node, into: &draft.specification.presentation)
        },
        AppKey("summary") { context, node, draft in
            TitleReader.readSummary(context, node, into: &draft.specification.presentation)
        },
        AppKey("icon") { context, node, draft in
            IconReader.read(context, node, into: &draft.specification.presentation)
        },
        .value("categories", \.specification.presentation.categories, CategoryReader.categories),
        .optional("language", \.specification.presentation.language, LanguageReader.language),
        .value("cover", \.specification.presentation.cover.command, CoverReader.command),
        .value("cover_after", \.specification.presentation.cover.after, Read.duration),
        .optional("launch_image", \.specification.presentation.launchImage, Read.path),
        .value("data_folders", \.specification.data.isWanted, Read.boolean),
        .optional("first_launch", \.specification.data.firstLaunch, Read.path),
        .optional("version", \.specification.data.version, DataFolderSpecification.version),
        AppKey("container") { context, node, draft in
            var container = draft.specification.container ?? ContainerSpecification()
            Read.table(context, node, ContainerReader.keys, into: &container)
            draft.specification.container = container
        },
        .value("sandbox", \.specification.sandbox.mode, SandboxReader.mode),
        .value("on_denied", \.specification.sandbox.onDenied) { Read.choice($0, $1) },
        AppKey("permissions") { context, node, draft in
            draft.specification.sandbox.add(SandboxReader.permissions(context, node))
            if draft.specification.sandbox.declarations.count > PermissionDeclaration.most {
                context.error("an app has at most \(PermissionDeclaration.most) permissions", at: node.position)
            }
        },
        AppKey("scenes") { context, node, draft in
            var scenes = draft.specification.scenes ?? draft.specification.innerScenes ?? SceneSpecification()
            Read.table(context, node, SceneReader.keys, into: &scenes)
            draft.specification.scenes = scenes.isInside ? nil : scenes
            draft.specification.innerScenes = scenes.isInside ? scenes : nil
            draft.specification.rules.hasScenes = scenes.isInside
        },
        .optional("instances", \.instances) { context, node in
            // PM2 has instances = "max".
            guard case .string = node.value else { return Read.integer(1...1_000)(context, node) }
            return context.expected("a number, such as 4 (‘nproc’ prints how many processors there are)", node)
        },
        .optional("instance_first", \.firstInstance, Read.integer(0...1_000_000_000)),
    ]

    private static let start: [AppKey] = [
        AppKey("type") { context, node, draft in
            let type: AppType? = Read.choice(context, node)
            if let type { draft.specification.rules.isOneshot = type == .oneshot }
        },
        .value("launch", \.specification.launch) { Read.choice($0, $1) },
        AppKey("ready") { context, node, draft in draft.ready = (context, node) },
        AppKey("health") { context, node, draft in draft.health = (context, node) },
        .value("requires", \.specification.requires, Read.texts),
        .value("after", \.specification.after, Read.texts),
        AppKey("settings") { context, node, draft in
            // Keep the settings of `[defaults]`, except those for which the app has its own declaration with the same
            // name.
            for setting in SettingReader.settings(context, node) {
                draft.specification.declaredSettings.removeAll { $0.name.utf8.elementsEqual(setting.name.utf8) }
                draft.specification.declaredSettings.append(setting)
            }
            if draft.specification.declaredSettings.count > SettingDeclaration.most {
                context.error("an app has at most \(SettingDeclaration.most) settings", at: node.position)
            }
            SettingReader.checkSteps(draft.specification.declaredSettings, context, node)
        },
        .value("settings_format", \.specification.settingsFormat) { Read.choice($0, $1) },
        .value("before_start", \.specification.beforeStart, TableReader.hooks),
        .value("after_stop", \.specification.afterStop, TableReader.hooks),
        .value("on_failure", \.specification.onFailure, TableReader.failureCommands),
        .value("owner", \.specification.rules.owner) { Read.choice($0, $1) },
        .value("restart", \.specification.rules.restart) { Read.restart($0, $1) },
        AppKey("restart_backoff") { context, node, draft in
            Read.table(context, node, TableReader.backoff, into: &draft.specification.rules.backoff)
        },
        .value("stable_after", \.specification.rules.backoff.stableAfter, Read.duration),
        AppKey("success_exit_status") { context, node, draft in
            guard let success = TableReader.success(context, node) else { return }
            draft.specification.rules.successExitCodes = success.codes
            draft.specification.rules.successSignals = success.signals
        },
    ]

    private static let stop: [AppKey] = [
        .value("stop_signal", \.specification.stopSignal, Read.signal(orKill: true)),
        .value("kill_mode", \.specification.killMode) { Read.choice($0, $1) },
        .value("watchdog_signal", \.specification.watchdogSignal, Read.signal(orKill: true)),
        .value("suspend_with", \.specification.suspendWith) { Read.choice($0, $1) },
        .value("exits_on_suspend", \.specification.rules.exitsOnSuspend, Read.boolean),
        .value("on_missed_transition", \.specification.rules.onMissedTransition) { Read.choice($0, $1) },
        AppKey("signals") { context, node, draft in
            for (message, signal) in TableReader.signals(context, node) {
                draft.specification.signals[message] = signal
            }
        },
        .value("answers", \.answers, Read.boolean),
        .value("notify_access", \.specification.notifyAccess) { Read.choice($0, $1) },
    ]

    private static let deadlines: [AppKey] = [
        .value("launch_deadline", \.specification.rules.launchDeadline, Read.deadline),
        .value("transition_deadline", \.specification.rules.transitionDeadline, Read.deadline),
        .value("background_deadline", \.specification.rules.backgroundDeadline, Read.deadline),
        .value("message_deadline", \.specification.rules.messageDeadline, Read.deadline),
        .value("suspend_deadline", \.specification.rules.suspendDeadline, Read.deadline),
        .value("grace", \.specification.rules.grace, Read.limit),
        .optional("extension_limit", \.specification.rules.extensionLimit, Read.positiveDuration),
        .value("watchdog", \.specification.rules.watchdog, Read.deadline),
    ]

    private static let background: [AppKey] = [
        .value("background_time", \.specification.rules.backgroundTime, Read.limit),
        .value("event_time", \.specification.rules.eventTime, Read.limit),
        .value("answer_time", \.specification.answerTime, Read.limit),
        .value("task_time", \.specification.rules.taskTime, Read.deadline),
        .value("task_budget", \.specification.rules.taskBudget, Read.deadline),
        .value("expiry_warning", \.specification.rules.expiryWarning, Read.duration),
        .value("on_lock", \.specification.rules.onLock) { Read.choice($0, $1) },
        .value("gpu_background", \.specification.gpuBackground) { Read.choice($0, $1) },
        .value("shared_resources", \.specification.sharedResources, Read.paths),
        .value("state_limit", \.specification.stateLimit, Read.size),
        AppKey("snapshot") { context, node, draft in draft.snapshot = (context, node) },
        .value("wake_after_force_quit", \.specification.wakeAfterForceQuit, Read.texts),
        .value("before_first_unlock", \.specification.beforeFirstUnlock) { Read.choice($0, $1) },
        .value("background_modes", \.specification.backgroundModes, EventReaders.modes),
        .value("bluetooth", \.specification.bluetooth, BluetoothReader.triggers),
        AppKey("location") { context, node, draft in
            Read.table(context, node, LocationReader.keys, into: &draft.specification.location)
        },
        .value("networks", \.specification.location.networks, NetworkReader.networks),
        .value("announce", \.specification.announcements, AnnouncementReader.announcements),
        .value("regions", \.specification.location.regions, LocationReader.regions),
        .value("wake_on_connect", \.specification.wakeOnConnect, EventReaders.wakeOnConnect),
        .value("suspended_connections", \.specification.suspendedConnections) { Read.choice($0, $1) },
        .value("keep_alive", \.specification.keepAlive, Read.deadline),
    ]

    private static let events: [AppKey] = [
        .value("fetch_interval", \.specification.fetchInterval, TimerReader.interval),
        .value("timers", \.specification.timers, TimerReader.timers),
    ]

    private static let connections: [AppKey] = [
        AppKey("sockets") { context, node, draft in draft.sockets = (context, node) }
    ]

    private static let memory: [AppKey] = [
        .value("evict", \.specification.rules.eviction) { Read.choice($0, $1) },
        .value("memory_limit", \.specification.memoryLimit, Read.size),
        .value("memory_needed", \.specification.memoryNeeded, Read.size),
        .value("priority", \.specification.priority, Read.integer(-1_000...1_000)),
        .value("page_out_after", \.specification.pageOutAfter, Read.limit),
        .value("purgeable", \.specification.purgeable, Read.paths),
        .value("last_resort", \.specification.lastResort, Read.boolean),
        AppKey("resources") { context, node, draft in
            TableReader.resources(context, node, into: &draft.specification.resources)
        },
    ]

    private static let messages: [AppKey] = [
        AppKey("topics") { context, node, draft in
            for (name, rule) in TopicRule.topics(context, node) { draft.specification.topics[name] = rule }
        },
        .value("accepts_from", \.specification.acceptsFrom, Read.texts),
        .value("mailbox_limit", \.specification.mailboxLimit, Read.integer(1...100_000)),
        .value("mailbox_size", \.specification.mailboxSize, Read.size),
        .value("mail_attempts", \.specification.mailAttempts, Read.integer(1...1_000)),
        .value("url_schemes", \.specification.opening.schemes, OpeningReader.schemes),
        .value("url_hosts", \.specification.opening.hosts, OpeningReader.hosts),
        .value("opens", \.specification.opening.files, OpeningReader.files),
        .value("may_open", \.specification.opening.mayOpen, OpeningReader.mayOpen),
        .value("activities", \.specification.opening.activities, OpeningReader.activities),
        .value("open_command", \.specification.opening.command, OpeningReader.command),
        AppKey("transfers") { context, node, draft in
            Read.table(context, node, TransferReader.app, into: &draft.specification.transfers)
        },
        .value("subscriptions", \.specification.subscriptions, SubscriptionReader.subscriptions),
        AppKey("wake_storm") { context, node, draft in
            Read.table(context, node, WakeStormReader.keys, into: &draft.specification.wakeStorm)
        },
    ]

    private static let notices: [AppKey] = [
        .value("paths", \.specification.paths) { context, node in
            let triggers = Read.elements(context, node, of: "tables", PathTrigger.read)
            return triggers.flatMap { Read.unique(context, node, $0, by: \.name) }
        },
        .value("devices", \.specification.devices) { context, node in
            var index = -1
            let triggers: [DeviceTrigger]? = Read.elements(context, node, of: "tables") { context, node in
                index += 1
                return DeviceTrigger.read(context, node, at: index)
            }
            return triggers.flatMap { Read.unique(context, node, $0, by: \.name) }
        },
        .value("settings_files", \.specification.settingsFiles, Read.paths),
        .value("identity_files", \.specification.identityFiles, Read.paths),
        .value("notifications", \.specification.notifications, Read.choices),
    ]

    private static let output: [AppKey] = [
        .value("log", \.specification.log) { Read.choice($0, $1) },
        .value("log_max_size", \.specification.logMaxSize, Read.size),
        .value("log_max_files", \.specification.logMaxFiles, Read.integer(0...1_000)),
        .value("log_max_age", \.specification.logMaxAge, Read.deadline),
        .value("stderr", \.specification.standardError, TableReader.standardError),
        .value("stdin", \.specification.standardInput, TableReader.standardInput),
    ]
}

/// The values of `type`.
enum AppType: String, CaseIterable {
    case service
    case oneshot
}

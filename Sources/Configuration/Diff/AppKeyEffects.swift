// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Permissions
import WireText

/// For each key of an app, when a change of the key takes effect for a running app. A test checks that each key of
/// `AppKeys` is listed.
enum AppKeyEffects {
    typealias AppKey = ComparedKey<AppSpecification>

    static let all: [AppKey] =
        (program + start + stop + deadlines + background + events + memory + output + notices + connections + messages)
        .sorted {
            $0.name < $1.name
        }

    /// Keys whose values a process gets only at its launch. Most changes of these keys therefore take effect only when
    /// the app is restarted.
    private static let program: [AppKey] = [
        .value("exec", \.exec, .restart),
        AppKey(
            name: "bundle",
            effect: { _, _ in .restart },
            isSame: { $0.bundle == $1.bundle },
            written: { $0.bundle.map { ["": $0.name + ($0.version.map { " " + $0 } ?? "")] } ?? [:] },
            copy: { $0.bundle = $1.bundle }
        ),
        .value("directory", \.directory, .restart),
        .value("user", \.user, .restart),
        .value("group", \.group, .restart),
        .value("supplementary_groups", \.supplementaryGroups, .restart),
        .table("environment", \.environment, .restart) { $0 },
        .value("environment_file", \.environmentFiles, .restart),
        .table("umask", \.umask, .restart) { $0.map { ["": Write.octal($0)] } ?? [:] },
        .value("nice", \.nice, .restart),
        AppKey(
            name: "limits",
            // A process gets its own limits when it is launched, so a change of these limits needs a restart. Only
            // `tasks`, which limits the app as a whole, can change while the app runs.
            effect: { $0.processLimits == $1.processLimits && $0.limits != $1.limits ? .live : .restart },
            isSame: { $0.limits == $1.limits },
            written: { specification in
                Dictionary(specification.limits.map { ($0.name, Write.limit($0)) }, uniquingKeysWith: { $1 })
            },
            copy: { $0.limits = $1.limits }
        ),
        AppKey(
            name: "container",
            effect: { _, _ in .restart },
            isSame: { $0.container == $1.container },
            written: { ContainerReader.written($0.container) },
            copy: { specification, new in
                specification.container = new.container
                specification.rules.readiness = new.rules.readiness
            }
        ),
        AppKey(
            name: "sandbox",
            effect: { _, _ in .restart },
            isSame: { $0.sandbox.mode == $1.sandbox.mode },
            written: { $0.sandbox.mode.map { ["": $0.rawValue] } ?? [:] },
            copy: { $0.sandbox.mode = $1.sandbox.mode }
        ),
        AppKey(
            name: "on_denied",
            // A launch tells the kernel whether to report denials at all. So a change from `ignore` takes effect only
            // at the next launch.
            effect: { old, _ in old.sandbox.onDenied == .ignore ? .launch : .live },
            isSame: { $0.sandbox.onDenied == $1.sandbox.onDenied },
            written: { $0.sandbox.onDenied == .log ? [:] : ["": $0.sandbox.onDenied.rawValue] },
            copy: { $0.sandbox.onDenied = $1.sandbox.onDenied }
        ),
        AppKey(
            name: "permissions",
            // Without a sandbox, permissions have no effect. The purpose of a permission is only a text for users, so a
            // change of it does not change what the app may do.
            effect: { old, new in
                let isSame = old.sandbox.withoutPurposes == new.sandbox.withoutPurposes
                return old.sandbox.mode == nil || isSame ? .live : .restart
            },
            isSame: { $0.sandbox.declarations == $1.sandbox.declarations },
            written: { specification in
                Dictionary(specification.sandbox.declarations.map { ($0.name, $0.written) }, uniquingKeysWith: { $1 })
            },
            copy: { $0.sandbox.declarations = $1.sandbox.declarations }
        ),
        .value("tags", \.tags, .live),
        .value("data_folders", \.data.isWanted, .restart),
        .value("first_launch", \.data.firstLaunch, .launch),
        .value("version", \.data.version, .restart),
        .table("protected", \.data.protection.kind, .restart) { $0.map { ["": $0.rawValue] } ?? [:] },
        .table("protected_fallback", \.data.protection.fallback, .restart) { ["": $0.rawValue] },
        .value("launch_when_locked", \.data.protection.launchesWhenLocked, .live),
        presented("title", \.title, \.titles),
        presented("summary", \.summary, \.summaries),
        presented("icon", \.icon, \.icons),
        .value("categories", \.presentation.categories, .live),
        .value("language", \.presentation.language, .launch),
        .value("cover", \.presentation.cover.command, .live),
        .value("cover_after", \.presentation.cover.after, .live),
        .value("launch_image", \.presentation.launchImage, .live),
        AppKey(
            name: "scenes",
            // An app learns only at its launch that its scenes are inside its own processes. All other changes of
            // `scenes` take effect at once.
            effect: { $0.rules.hasScenes == $1.rules.hasScenes ? .live : .restart },
            isSame: { $0.scenes == $1.scenes && $0.innerScenes == $1.innerScenes },
            written: { ($0.scenes ?? $0.innerScenes).map(SceneReader.written) ?? [:] },
            copy: { specification, new in
                specification.scenes = new.scenes
                specification.innerScenes = new.innerScenes
                specification.rules.hasScenes = new.rules.hasScenes
            }
        ),
        ofNames("instances"),
        ofNames("instance_first"),
    ]

    /// A key for a text or picture that users see. It has a default value and variants, such as translations by
    /// language.
    private static func presented(
        _ name: String,
        _ value: any WritableKeyPath<AppPresentation, String?> & Sendable,
        _ variants: any WritableKeyPath<AppPresentation, [String: String]> & Sendable
    ) -> AppKey {
        AppKey(
            name: name,
            effect: { _, _ in .live },
            isSame: { one, other in
                one.presentation[keyPath: value] == other.presentation[keyPath: value]
                    && one.presentation[keyPath: variants] == other.presentation[keyPath: variants]
            },
            written: { specification in
                var all = specification.presentation[keyPath: variants]
                all[""] = specification.presentation[keyPath: value]
                return all
            },
            copy: { specification, new in
                specification.presentation[keyPath: value] = new.presentation[keyPath: value]
                specification.presentation[keyPath: variants] = new.presentation[keyPath: variants]
            }
        )
    }

    /// A key that determines which instances exist. A change adds and removes instances, but does not change any
    /// existing one.
    private static func ofNames(_ name: String) -> AppKey {
        AppKey(
            name: name,
            effect: { _, _ in .apps },
            isSame: { _, _ in true },
            written: { _ in [:] },
            copy: { _, _ in }
        )
    }

    private static let start: [AppKey] = [
        // A running service cannot become a oneshot app, and a oneshot app cannot become a service.
        .table("type", \.rules.isOneshot, .restart) { ["": ($0 ? AppType.oneshot : .service).rawValue] },
        // Compare the declarations of settings, not the values that users have set.
        .table("settings", \.declaredSettings, .live) { settings in
            Dictionary(settings.map { ($0.name, $0.written ?? "") }, uniquingKeysWith: { $1 })
        },
        .value("settings_format", \.settingsFormat, .live),
        // torpord reads `launch` only when it decides whether to launch the app, such as at its own start. A running
        // app is not affected.
        .value("launch", \.launch, .live),
        AppKey(
            name: "ready",
            effect: { _, _ in .launch },
            isSame: { $0.ready == $1.ready },
            written: { $0.ready.written.map { ["": $0] } ?? [:] },
            copy: { specification, new in
                specification.ready = new.ready
                specification.rules.readiness = new.rules.readiness
            }
        ),
        .value("health", \.health, .live),
        .value("requires", \.requires, .live),
        .value("after", \.after, .live),
        .value("before_start", \.beforeStart, .launch),
        .value("after_stop", \.afterStop, .live),
        .value("on_failure", \.onFailure, .live),
        .value("owner", \.rules.owner, .restart),
        .value("restart", \.rules.restart, .live),
        AppKey(
            name: "restart_backoff",
            effect: { _, _ in .live },
            isSame: { backoff($0) == backoff($1) },
            written: { members(of: backoff($0)) },
            copy: { specification, new in
                let stableAfter = specification.rules.backoff.stableAfter
                specification.rules.backoff = new.rules.backoff
                specification.rules.backoff.stableAfter = stableAfter
            }
        ),
        .value("stable_after", \.rules.backoff.stableAfter, .live),
        AppKey(
            name: "success_exit_status",
            effect: { _, _ in .live },
            isSame: {
                $0.rules.successExitCodes == $1.rules.successExitCodes
                    && $0.rules.successSignals == $1.rules.successSignals
            },
            written: { specification in
                let codes = specification.rules.successExitCodes.sorted().map { "\($0)" }
                let signals = specification.rules.successSignals.sorted().map(Signal.name)
                return ["": "[" + (codes + signals).joined(separator: ", ") + "]"]
            },
            copy: { specification, new in
                specification.rules.successExitCodes = new.rules.successExitCodes
                specification.rules.successSignals = new.rules.successSignals
            }
        ),
    ]

    private static let stop: [AppKey] = [
        .table("stop_signal", \.stopSignal, .live) { ["": Signal.name($0)] },
        .value("kill_mode", \.killMode, .live),
        .table("watchdog_signal", \.watchdogSignal, .live) { ["": Signal.name($0)] },
        // torpord must resume an app by the same method by which it suspended the app, so a running app keeps its
        // method.
        .value("suspend_with", \.suspendWith, .restart),
        .value("exits_on_suspend", \.rules.exitsOnSuspend, .live),
        .value("on_missed_transition", \.rules.onMissedTransition, .live),
        AppKey(
            name: "signals",
            effect: { _, _ in .live },
            isSame: { $0.signals == $1.signals },
            written: { specification in
                Dictionary(
                    specification.signals.map { ($0.key.rawValue, Signal.name($0.value)) },
                    uniquingKeysWith: { $1 }
                )
            },
            copy: { specification, new in
                specification.signals = new.signals
                specification.rules.answeredMessages = new.rules.answeredMessages
            }
        ),
        AppKey(
            name: "answers",
            effect: { _, _ in .live },
            isSame: { $0.rules.answeredMessages.isEmpty == $1.rules.answeredMessages.isEmpty },
            written: { ["": $0.rules.answeredMessages.isEmpty ? "false" : "true"] },
            copy: { $0.rules.answeredMessages = $1.rules.answeredMessages }
        ),
        .value("notify_access", \.notifyAccess, .live),
    ]

    private static let deadlines: [AppKey] = [
        .value("launch_deadline", \.rules.launchDeadline, .live),
        .value("transition_deadline", \.rules.transitionDeadline, .live),
        .value("background_deadline", \.rules.backgroundDeadline, .live),
        .value("message_deadline", \.rules.messageDeadline, .live),
        .value("suspend_deadline", \.rules.suspendDeadline, .live),
        .value("grace", \.rules.grace, .live),
        .value("extension_limit", \.rules.extensionLimit, .live),
        // A running app sends heartbeats at the interval that it got at its launch, or none if it got no interval. With
        // a shorter interval, torpord would consider these heartbeats late or missing. So the app must be restarted.
        .value("watchdog", \.rules.watchdog, .live) { old, new in
            guard let new else { return .live }
            return old.map { $0 <= new } ?? false ? .live : .restart
        },
    ]

    private static let background: [AppKey] = [
        .value("background_time", \.rules.backgroundTime, .live),
        .value("event_time", \.rules.eventTime, .live),
        .value("answer_time", \.answerTime, .live),
        .value("task_time", \.rules.taskTime, .live),
        .value("task_budget", \.rules.taskBudget, .live),
        .value("expiry_warning", \.rules.expiryWarning, .live),
        .value("on_lock", \.rules.onLock, .live),
        .value("gpu_background", \.gpuBackground, .live),
        .value("shared_resources", \.sharedResources, .live),
        .table("state_limit", \.stateLimit, .live, size),
        AppKey(
            name: "snapshot",
            effect: { _, _ in .live },
            isSame: { $0.snapshot == $1.snapshot },
            written: { $0.snapshot.written.map { ["": $0] } ?? [:] },
            copy: { specification, new in
                specification.snapshot = new.snapshot
                specification.rules.snapshotDeadline = new.rules.snapshotDeadline
            }
        ),
        .value("wake_after_force_quit", \.wakeAfterForceQuit, .live),
        .value("before_first_unlock", \.beforeFirstUnlock, .live),
        .value("background_modes", \.backgroundModes, .live),
        .value("bluetooth", \.bluetooth, .live),
        AppKey(
            name: "location",
            effect: { _, _ in .live },
            isSame: { LocationReader.members($0.location) == LocationReader.members($1.location) },
            written: { LocationReader.members($0.location) },
            copy: { specification, new in
                let places = (specification.location.regions, specification.location.networks)
                specification.location = new.location
                (specification.location.regions, specification.location.networks) = places
            }
        ),
        .value("networks", \.location.networks, .live),
        .value("announce", \.announcements, .live),
        .value("regions", \.location.regions, .live),
        .value("wake_on_connect", \.wakeOnConnect, .live),
        .value("suspended_connections", \.suspendedConnections, .live),
        .value("keep_alive", \.keepAlive, .live),
    ]

    private static let events: [AppKey] = [
        .value("fetch_interval", \.fetchInterval, .live),
        .table("timers", \.timers, .live) { timers in
            Dictionary(timers.map { ($0.name, $0.written) }, uniquingKeysWith: { $1 })
        },
    ]

    private static let connections: [AppKey] = [
        AppKey(
            name: "sockets",
            // A running app keeps the sockets that it got at its launch. If a launch would now pass it other sockets,
            // it must be restarted. All other changes take effect at once.
            effect: { old, new in
                let isPassedAlike = old.sockets.elementsEqual(new.sockets) { $0.isPassedLike($1) }
                return isPassedAlike && old.sockets != new.sockets ? .live : .restart
            },
            isSame: { $0.sockets == $1.sockets },
            written: { specification in
                Dictionary(
                    specification.sockets.map {
                        ($0.name, String(($0.written ?? "").dropFirst($0.name.utf8.count + 2)))
                    },
                    uniquingKeysWith: { $1 }
                )
            },
            copy: { $0.sockets = $1.sockets }
        )
    ]

    private static let memory: [AppKey] = [
        .value("evict", \.rules.eviction, .live),
        .table("memory_limit", \.memoryLimit, .live, size),
        .table("memory_needed", \.memoryNeeded, .live, size),
        .value("priority", \.priority, .live),
        .value("page_out_after", \.pageOutAfter, .live),
        .value("purgeable", \.purgeable, .live),
        .value("last_resort", \.lastResort, .live),
        .table("resources", \.resources, .live, members(of:)),
    ]

    private static let messages: [AppKey] = [
        .table("topics", \.topics, .live, TopicRule.members(of:)),
        .value("accepts_from", \.acceptsFrom, .live),
        .value("mailbox_limit", \.mailboxLimit, .live),
        .table("mailbox_size", \.mailboxSize, .live, size),
        .value("mail_attempts", \.mailAttempts, .live),
        .value("url_schemes", \.opening.schemes, .live),
        .value("url_hosts", \.opening.hosts, .live),
        .value("opens", \.opening.files, .live),
        .value("activities", \.opening.activities, .live),
        .value("may_open", \.opening.mayOpen, .live),
        .value("open_command", \.opening.command, .live),
        .table("transfers", \.transfers, .live, TransferReader.members(of:)),
        .value("subscriptions", \.subscriptions, .live),
        .table("wake_storm", \.wakeStorm, .live, WakeStormReader.members(of:)),
    ]

    private static let notices: [AppKey] = [
        .value("paths", \.paths, .live),
        .value("devices", \.devices, .live),
        .value("settings_files", \.settingsFiles, .live),
        .value("identity_files", \.identityFiles, .live),
        .value("notifications", \.notifications, .live),
    ]

    private static let output: [AppKey] = [
        // A running app keeps the descriptors to which it writes its output, so a new destination takes effect at its
        // restart.
        .value("log", \.log, .restart),
        .table("log_max_size", \.logMaxSize, .live, size),
        .value("log_max_files", \.logMaxFiles, .live),
        .value("log_max_age", \.logMaxAge, .live),
        .value("stderr", \.standardError, .restart),
        .value("stdin", \.standardInput, .restart),
    ]

    // MARK: Members of tables

    @Sendable static func size(_ bytes: UInt64?) -> [String: String] {
        bytes.map { ["": Write.size($0)] } ?? [:]
    }

    /// The table `restart_backoff`, without `stable_after`, which is a key of its own.
    private static func backoff(_ specification: AppSpecification) -> RestartBackoff {
        var backoff = specification.rules.backoff
        backoff.stableAfter = .zero
        return backoff
    }

    private static func members(of backoff: RestartBackoff) -> [String: String] {
        [
            "initial": Quantity.text(backoff.initial), "factor": "\(backoff.factor)",
            "cap": Quantity.text(backoff.cap), "limit": "\(backoff.limit)", "window": Quantity.text(backoff.window),
            "jitter": "\(backoff.jitter)",
        ]
    }

    @Sendable private static func members(of profiles: [AppState: ResourceProfile]) -> [String: String] {
        var members: [String: String] = [:]
        for (state, profile) in profiles {
            func add(_ name: String, _ value: (any Written)?) {
                if let text = value?.written { members["\(state.rawValue).\(name)"] = text }
            }
            add("cpu_weight", profile.cpuWeight)
            add("io_weight", profile.ioWeight)
            add("oom_score_adj", profile.oomScoreAdjust)
            add("timer_slack", profile.timerSlack)
            add("cpu_max", profile.cpuMaximum.map(Write.processorLimit))
            add("memory_high", profile.memoryHigh.map { $0 == .max ? "none" : Write.size($0) })
            add("memory_low", profile.memoryLow.map { $0 == 0 ? "none" : Write.size($0) })
        }
        return members
    }
}

extension RestartPolicy: Written {}
extension MissedTransition: Written {}
extension EvictionRule: Written {}
extension OwnerRule: Written {}
extension SettingsFormat: Written {}
extension SuspendedConnections: Written {}
extension GPURule: Written {}

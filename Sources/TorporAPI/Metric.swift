// SPDX-License-Identifier: Apache-2.0

/// A metric of `torpor metrics`, with its kind and its unit. The raw value is the name of the metric's family in
/// OpenMetrics.
public enum Metric: String, CaseIterable, Sendable {
    // Metrics of the supervisor.
    case supervisor = "torpor_supervisor"
    case supervisorStart = "torpor_supervisor_start_time_seconds"
    case supervisorProcessor = "torpor_supervisor_cpu_seconds"
    case supervisorMemory = "torpor_supervisor_resident_memory_bytes"
    case supervisorDescriptors = "torpor_supervisor_open_fds"
    case events = "torpor_events"

    // Metrics of all apps together.
    case apps = "torpor_apps"
    case transitions = "torpor_transitions"
    case transitionDuration = "torpor_transition_duration_seconds"
    case deadlinesMissed = "torpor_deadlines_missed"
    case wakeLatency = "torpor_wake_latency_seconds"
    case wakesHeldBack = "torpor_wakes_held_back"

    // Metrics of each app.
    case appState = "torpor_app_state"
    case appFailed = "torpor_app_failed"
    case appMemory = "torpor_app_memory_bytes"
    case appProcessor = "torpor_app_cpu_seconds"
    case appUptime = "torpor_app_uptime_seconds"
    case appAsleep = "torpor_app_asleep_seconds"
    case appUnhealthy = "torpor_app_unhealthy"
    case appOwned = "torpor_app_owned"
    case appHolds = "torpor_app_holds"
    case appMail = "torpor_app_mailbox_messages"
    case appUnhandled = "torpor_app_unhandled_messages"
    case appUnhandledDropped = "torpor_app_unhandled_dropped"
    case appTransfers = "torpor_app_transfers"
    case appTransfersEnded = "torpor_app_transfers_ended"
    case appTransferred = "torpor_app_transferred_bytes"
    case appAlerts = "torpor_app_alerts"
    case appDenials = "torpor_app_denials"
    case appAlertsShown = "torpor_app_alerts_shown"
    case appBadge = "torpor_app_badge"
    case appLaunches = "torpor_app_launches"
    case appRestarts = "torpor_app_restarts"
    case scenes = "torpor_scenes"
    case appEndings = "torpor_app_endings"
    case appWakes = "torpor_app_wakes"

    // Metrics of memory.
    case memoryTotal = "torpor_memory_total_bytes"
    case memoryAvailable = "torpor_memory_available_bytes"
    case swapTotal = "torpor_swap_total_bytes"
    case swapFree = "torpor_swap_free_bytes"
    case memoryLevel = "torpor_memory_level"
    case memoryWaiting = "torpor_memory_waiting_seconds"
    case memorySteps = "torpor_memory_steps"

    // Metrics of policies.
    case policyState = "torpor_policy_state"
    case policyAnswer = "torpor_policy_answer_seconds"
    case policyAdvice = "torpor_policy_advice"
    case policyFailures = "torpor_policy_failures"
    case policyStalls = "torpor_policy_stalls"

    /// The metric types of OpenMetrics that Torpor uses.
    public enum Kind: String, Sendable {
        case counter, gauge, histogram, info, stateset, summary
    }

    /// The metric's type in OpenMetrics.
    public var kind: Kind {
        switch self {
        case .supervisor: .info
        case .supervisorProcessor, .events, .transitions, .deadlinesMissed, .wakesHeldBack, .appProcessor, .appLaunches,
            .appUnhandledDropped, .appDenials, .appAlertsShown, .appTransfersEnded, .appTransferred, .appRestarts,
            .appEndings,
            .appWakes,
            .memoryWaiting, .memorySteps, .policyAdvice,
            .policyFailures,
            .policyStalls:
            .counter
        case .supervisorStart, .supervisorMemory, .supervisorDescriptors, .apps, .appFailed, .appMemory, .appUptime,
            .appAsleep,
            .appUnhealthy, .appOwned,
            .appHolds, .appMail, .appUnhandled, .appTransfers, .appAlerts, .appBadge, .scenes, .memoryTotal,
            .memoryAvailable, .swapTotal,
            .swapFree:
            .gauge
        case .transitionDuration, .wakeLatency: .histogram
        case .appState, .memoryLevel, .policyState: .stateset
        case .policyAnswer: .summary
        }
    }

    /// The metric's unit, which is the last part of its name; nil for counts.
    public var unit: String? { ["seconds", "bytes"].first { rawValue.hasSuffix("_" + $0) } }

    /// The names of the labels that the metric's samples have.
    public var labels: [String] {
        switch self {
        case .supervisor: ["version", "generation"]
        case .supervisorProcessor, .supervisorMemory, .supervisorDescriptors: ["process"]
        case .events: ["kind"]
        case .apps: ["state"]
        case .transitions: ["from", "to"]
        case .transitionDuration: ["transition"]
        case .deadlinesMissed: ["deadline"]
        case .wakeLatency: ["source"]
        case .appState: ["app", rawValue]
        case .appFailed, .appMemory, .appProcessor, .appUptime, .appAsleep, .appUnhealthy, .appHolds, .appMail,
            .appUnhandled, .appOwned,
            .appUnhandledDropped, .appDenials, .appAlertsShown, .appBadge, .appLaunches, .appRestarts, .appWakes:
            ["app"]
        case .appTransfers, .appAlerts: ["app", "state"]
        case .scenes: ["template", "state"]
        case .appTransfersEnded: ["app", "result"]
        case .appTransferred: ["app", "direction"]
        case .appEndings: ["app", "reason"]
        case .memoryLevel: [rawValue]
        case .memoryWaiting: ["tasks"]
        case .memorySteps: ["rung"]
        case .policyState: ["policy", rawValue]
        case .policyAnswer: ["policy", "quantile"]
        case .policyAdvice: ["policy", "outcome"]
        case .policyFailures, .policyStalls: ["policy"]
        case .supervisorStart, .wakesHeldBack, .memoryTotal, .memoryAvailable, .swapTotal, .swapFree: []
        }
    }

    /// What the metric measures, in a sentence.
    public var help: String {
        switch self {
        case .supervisor: "The version of torpord, and how many its keeper has started."
        case .supervisorStart: "Unix time at which torpord started, when its counters began at zero."
        case .supervisorProcessor: "Processor time that torpord and its keeper have used."
        case .supervisorMemory: "Resident memory of torpord and its keeper, including shared pages."
        case .supervisorDescriptors: "Descriptors that torpord and its keeper have open."
        case .events: "How many events there were, as ‘torpor events’ shows them."
        case .apps: "How many apps are in a state."
        case .transitions: "How often apps changed from one state to another."
        case .transitionDuration: "How long apps took to change their state."
        case .deadlinesMissed: "How often an app missed a deadline."
        case .wakeLatency: "How long it took from an event until the app ran for it."
        case .wakesHeldBack: "How often an event did not wake an app that was woken too often or must not be woken."
        case .appState: "The state of an app."
        case .appFailed: "Whether an app has failed and is no longer restarted."
        case .appMemory: "Memory of all processes of an app."
        case .appProcessor: "Processor time of all processes of an app in this run of it."
        case .appUptime: "How long an app has run, including suspended time."
        case .appAsleep: "How long an app was suspended in this run of it."
        case .appOwned: "Whether this machine may run an app with an owner (owner = \"external\")."
        case .appUnhealthy: "Whether an app failed its last health check."
        case .appHolds: "How many tasks, modes and operators keep an app in the background."
        case .appMail: "How many messages are queued for an app."
        case .appUnhandled: "How many messages to an app were not handled."
        case .appUnhandledDropped: "How many unhandled messages were dropped because there were too many."
        case .appTransfers: "How many transfers of an app are queued, running or waiting, including subscriptions."
        case .appTransfersEnded: "How many transfers of an app are done, failed or cancelled."
        case .scenes: "How many scenes of a template are in a state; unattached are those without a process."
        case .appTransferred: "How much was downloaded and uploaded for an app, including failed attempts."
        case .appAlerts: "How many alerts of an app are scheduled or open."
        case .appDenials: "How often the kernel reported that it denied something to a sandboxed app."
        case .appAlertsShown: "How many alerts of an app were shown."
        case .appBadge: "The number at an app's entry."
        case .appLaunches: "How often an app was launched."
        case .appRestarts: "How often an app was restarted since a person last started or reset it."
        case .appEndings: "How often, and why, an app ended."
        case .appWakes: "How often events launched or woke an app."
        case .memoryTotal: "Memory of the machine, or the limit of the cgroup around all apps."
        case .memoryAvailable: "Memory available without swapping."
        case .swapTotal: "Swap of the machine."
        case .swapFree: "Swap that is not in use."
        case .memoryLevel: "How short memory is."
        case .memoryWaiting: "How long some or all tasks waited for memory, as the kernel counts it."
        case .memorySteps: "Steps taken because memory was short."
        case .policyState: "The state of a policy."
        case .policyAnswer: "How long a policy took to answer."
        case .policyAdvice: "What became of a policy's advice."
        case .policyFailures: "Crashes, late answers, protocol errors and floods of a policy."
        case .policyStalls: "Late answers of a policy while the machine stalled, which do not count as failures."
        }
    }
}

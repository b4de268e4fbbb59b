// SPDX-License-Identifier: Apache-2.0

/// A command of `before_start` or `after_stop`.
public struct HookCommand: Sendable, Hashable {
    /// The program and its arguments; never empty.
    public var command: [String]
    /// How long the command may run before it is killed and counts as failed; `nil` for no limit.
    public var deadline: Duration? = .seconds(30)

    /// Creates a command with the default deadline.
    public init(_ command: [String]) {
        self.command = command
    }
}

/// A command of `on_failure`.
public struct FailureCommand: Sendable, Hashable {
    /// The program and its arguments; never empty.
    public var command: [String]
    /// How long the command may run before it is killed and counts as failed. There is always a limit, because few
    /// such commands run at the same time.
    public var deadline: Duration = .seconds(30)
    /// Whether the command also runs if the app is restarted after the failure.
    public var each = false

    /// Creates a command with the default deadline, which runs when the app is not restarted.
    public init(_ command: [String]) {
        self.command = command
    }
}

/// The values of `before_start`, `after_stop` and `on_failure`.
struct Hooks: Sendable, Hashable {
    var beforeStart: [HookCommand] = []
    var afterStop: [HookCommand] = []
    var onFailure: [FailureCommand] = []
}

extension AppSettings {
    /// Commands that run one after the other before each launch. If a command fails, the launch fails.
    public var beforeStart: [HookCommand] {
        get { hooks.beforeStart }
        set { hooks.beforeStart = newValue }
    }

    /// Commands that run after each exit of the app.
    public var afterStop: [HookCommand] {
        get { hooks.afterStop }
        set { hooks.afterStop = newValue }
    }

    /// Commands that run when the app has failed.
    public var onFailure: [FailureCommand] {
        get { hooks.onFailure }
        set { hooks.onFailure = newValue }
    }
}

import Lifecycle

/// What a policy can be asked. Plugins will be asked the same.
enum PolicyQuestion: Hashable, Sendable {
    /// The app's granted time in the background is used up.
    case backgroundTimeUsed(app: String)
}

/// What a policy answers: advice, which the supervisor follows where its rules allow.
enum PolicyAdvice: Hashable, Sendable {
    /// Leave things as they are.
    case leave
    /// Ask this of the app, for a reason in words.
    case request(Request, because: String)
}

/// Decides what should happen to whom; it changes nothing itself.
protocol LifecyclePolicy {
    func advice(on question: PolicyQuestion) -> PolicyAdvice
}

/// The built-in policy: apps go where they are told, and nothing is suspended for being idle.
struct DefaultPolicy: LifecyclePolicy {
    func advice(on question: PolicyQuestion) -> PolicyAdvice {
        switch question {
        case .backgroundTimeUsed: .leave
        }
    }
}

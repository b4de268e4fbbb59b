public import TorporPolicyKit

/// What the supervisor asks for.
@c(torpor_policy_entry)
public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Mobile.exported(to: abi) }

/// One app in front, as on a phone.
struct Mobile: Policy {
    static let description = PolicyDescription(
        name: "mobile",
        version: "1.0",
        summary: "At most max_active apps are in the foreground; what is in the background is suspended in time.",
        events: [.timeUsed],
        options: [
            OptionDescription("max_active", "integer", default: "1", "how many apps may be in the foreground")
        ]
    )

    let maxActive: Int

    init(options: Options) throws(PolicyError) {
        maxActive = try options.integer("max_active", default: 1, in: 1...1_000)
    }

    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        guard case .timeUsed(let app) = event, !app.isHeld, !app.isRequired else { return .continue }
        advice.send(app, to: .suspended, because: "its time in the background is used up")
        return .continue
    }
}

// SPDX-License-Identifier: Apache-2.0

extension Policy {
    /// The policy's table for `torpor_policy_entry`; nil if the policy needs a later ABI than the supervisor has.
    public static func exported(to abi: UInt32) -> UnsafePointer<torpor_policy>? {
        guard abi >= description.minimumABI else { return nil }
        return Exported.table(of: Self.self)
    }
}

/// What a library exports. C functions have no context parameter, so they find the policy's type in these static
/// variables.
private enum Exported {
    // The entry point writes this once, before any other call. Only a single thread calls a policy.
    nonisolated(unsafe) static var type: (any Policy.Type)?
    nonisolated(unsafe) static var table: UnsafePointer<torpor_policy>?

    static func table(of type: any Policy.Type) -> UnsafePointer<torpor_policy>? {
        if let table { return self.type == type ? table : nil }
        let description = type.description
        let made = UnsafeMutablePointer<torpor_policy>.allocate(capacity: 1)
        made.initialize(
            to: torpor_policy(
                size: UInt32(MemoryLayout<torpor_policy>.size),
                abi: TORPOR_POLICY_ABI,
                minimum_abi: description.minimumABI,
                reserved: 0,
                events: description.events.rawValue,
                needs: description.needs.rawValue,
                name: constant(description.name),
                version: constant(description.version),
                summary: constant(description.summary),
                options: options(description.options),
                create: create,
                decide: decide,
                destroy: destroy
            )
        )
        self.type = type
        table = UnsafePointer(made)
        return table
    }

    /// A C string that is never freed.
    private static func constant(_ text: String) -> UnsafePointer<CChar> {
        let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: text.utf8.count + 1)
        var next = bytes
        for byte in text.utf8 where byte != 0 {
            next.initialize(to: CChar(bitPattern: byte))
            next += 1
        }
        next.initialize(to: 0)
        return UnsafePointer(bytes)
    }

    private static func options(_ options: [OptionDescription]) -> UnsafePointer<UnsafePointer<CChar>?> {
        let texts = options.flatMap { [$0.key, $0.type, $0.defaultValue, $0.meaning] }
        let list = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: texts.count + 1)
        for (index, text) in texts.enumerated() { (list + index).initialize(to: constant(text)) }
        (list + texts.count).initialize(to: nil)
        return UnsafePointer(list)
    }
}

/// The object that the supervisor's pointer to the policy refers to.
private class Instance {
    func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict { .continue }
}

private final class InstanceOf<Made: Policy>: Instance {
    // A single thread calls a policy, and never recursively. A pointer avoids the exclusivity check that a variable
    // would need at each call.
    private let policy: UnsafeMutablePointer<Made>

    init(_ policy: Made) {
        self.policy = .allocate(capacity: 1)
        self.policy.initialize(to: policy)
    }

    deinit {
        policy.deinitialize(count: 1)
        policy.deallocate()
    }

    override func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        policy.pointee.decide(event, in: view, advice: &advice)
    }
}

private func make<Made: Policy>(_ type: Made.Type, _ options: Options) throws(PolicyError) -> Instance {
    try options.requireKnown(Made.description.options)
    return InstanceOf(try Made(options: options))
}

private func create(
    _ options: UnsafePointer<torpor_policy_options>?,
    _ sentence: UnsafeMutablePointer<CChar>?,
    _ size: Int
) -> UnsafeMutableRawPointer? {
    guard let type = Exported.type else { return nil }
    do throws(PolicyError) {
        return Unmanaged.passRetained(try make(type, Options(options))).toOpaque()
    } catch {
        say(error.description, into: sentence, size)
        return nil
    }
}

/// Writes a sentence with its NUL into `room`. A sentence that is too long is cut off after the last character that
/// fits.
private func say(_ sentence: String, into room: UnsafeMutablePointer<CChar>?, _ size: Int) {
    guard let room, size > 0 else { return }
    var count = 0
    for scalar in sentence.unicodeScalars {
        let width = UTF8.width(scalar)
        guard count + width < size else { break }
        for byte in UTF8.encode(scalar)! {
            room[count] = CChar(bitPattern: byte)
            count += 1
        }
    }
    room[count] = 0
}

private func decide(
    _ policy: UnsafeMutableRawPointer?,
    _ view: UnsafePointer<torpor_policy_view>?,
    _ event: UnsafePointer<torpor_policy_event>?,
    _ reply: UnsafePointer<torpor_policy_reply>?
) -> Int32 {
    guard let policy, let view, let event, let reply,
        event.pointee.size >= MemoryLayout<torpor_policy_event>.size,
        let view = View(view, eventTime: Time(microseconds: event.pointee.at))
    else { return Verdict.continue.code }
    let asked = Event(event.pointee, in: view)
    var advice = Advice(reply)
    return Unmanaged<Instance>.fromOpaque(policy)._withUnsafeGuaranteedRef {
        $0.decide(asked, in: view, advice: &advice).code
    }
}

private func destroy(_ policy: UnsafeMutableRawPointer?) {
    guard let policy else { return }
    Unmanaged<Instance>.fromOpaque(policy).release()
}

// SPDX-License-Identifier: Apache-2.0

internal import CPolicyWire
import Linux
public import TorporPolicyABI

/// A policy in this process. Its functions are called directly, so a faulty policy can do all the harm that this
/// process can.
public final class PolicyLibrary {
    /// The policy's description of itself.
    public let description: PolicyDescription

    private let policy: UnsafePointer<torpor_policy>
    private let decide: Decide
    private let instance: UnsafeMutableRawPointer

    private typealias Decide =
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafePointer<torpor_policy_view>?, UnsafePointer<torpor_policy_event>?,
            UnsafePointer<torpor_policy_reply>?
        ) -> Int32

    /// Opens a library and creates its policy.
    ///
    /// - Parameters:
    ///   - path: the path of the library, which ``LibraryTrust`` has checked before.
    ///   - options: the options for the policy.
    /// - Throws: ``PolicyFailure/refused(_:)``, with a sentence.
    public init(path: String, options: [PolicyOption]) throws(PolicyFailure) {
        let library: DynamicLibrary
        do throws(DynamicLibrary.Failure) {
            library = try DynamicLibrary(path: path)
        } catch {
            throw PolicyFailure.refused(
                "\(path) cannot be loaded: \(PolicyText.clean(error.description, limit: sentenceLimit))"
            )
        }
        // Otherwise a program that overwrites the file would crash this process. Where copies are forbidden, the library
        // works as well.
        try? library.detachFromFile()
        guard let symbol = library.symbol(TORPOR_POLICY_ENTRY) else {
            throw PolicyFailure.refused("\(path) is not a policy: it has no function \(TORPOR_POLICY_ENTRY)")
        }
        typealias Entry = @convention(c) (UInt32) -> UnsafePointer<torpor_policy>?
        let entry = unsafeBitCast(symbol, to: Entry.self)
        guard let policy = entry(TORPOR_POLICY_ABI) else {
            throw PolicyFailure.refused(
                "\(path) does not work with this supervisor, whose policy ABI is \(TORPOR_POLICY_ABI)"
            )
        }
        (description, decide) = try Self.describe(policy, path)
        self.policy = policy
        instance = try Self.create(policy, path, options)
    }

    deinit { policy.pointee.destroy?(instance) }

    /// Asks the policy about at most ``eventLimit`` events. The view must not change during the call.
    ///
    /// - Parameter limit: the maximum number of pieces of advice.
    /// - Throws: ``PolicyFailure/flooded(limit:)`` if the policy gives more.
    public func ask(
        _ events: UnsafeBufferPointer<torpor_policy_event>,
        of view: PolicyView,
        limit: Int
    ) throws(PolicyFailure) -> PolicyAnswer {
        precondition(events.count <= Self.eventLimit)
        var collector = AdviceCollector(limit: limit)
        var decided: UInt64 = 0
        let instance = instance
        let decide = decide
        withUnsafeMutablePointer(to: &collector) { collector in
            withUnsafePointer(to: view.pointers) { view in
                var reply = torpor_policy_reply(
                    size: UInt32(MemoryLayout<torpor_policy_reply>.size),
                    reserved: 0,
                    context: UnsafeMutableRawPointer(collector),
                    advise: takeAdvice
                )
                for index in events.indices {
                    collector.pointee.event = index
                    let event = events.baseAddress! + index
                    if decide(instance, view, event, &reply) == Int32(TORPOR_DECIDED.rawValue) {
                        decided |= 1 << UInt64(index)
                    }
                }
            }
        }
        if collector.hasFlooded { throw .flooded(limit: limit) }
        return PolicyAnswer(decided: decided, advice: collector.advice)
    }

    /// The maximum number of events per question.
    public static let eventLimit = Int(TORPOR_POLICY_EVENT_LIMIT)

    // MARK: The table

    private static func describe(
        _ policy: UnsafePointer<torpor_policy>,
        _ path: String
    ) throws(PolicyFailure) -> (
        PolicyDescription, Decide
    ) {
        // The struct had this size in the first ABI version: no shorter struct was ever released.
        guard policy.pointee.size >= MemoryLayout<torpor_policy>.size else {
            throw PolicyFailure.refused("\(path) describes itself in \(policy.pointee.size) bytes, which is too few")
        }
        guard policy.pointee.minimum_abi <= TORPOR_POLICY_ABI else {
            throw PolicyFailure.refused(
                "\(path) needs policy ABI \(policy.pointee.minimum_abi) or later; this supervisor has "
                    + "\(TORPOR_POLICY_ABI): use an older version of the policy, or upgrade Torpor"
            )
        }
        guard let name = policy.pointee.name, let decide = policy.pointee.decide, policy.pointee.create != nil,
            name.pointee != 0
        else { throw PolicyFailure.refused("\(path) lacks a name, or one of the functions create and decide") }
        var texts: [String] = []
        if var next = policy.pointee.options {
            while let here = next.pointee, texts.count < 4 * Int(TORPOR_POLICY_OPTION_LIMIT) {
                texts.append(text(here, limit: sentenceLimit))
                next += 1
            }
        }
        let description = PolicyDescription(
            name: text(name, limit: nameLimit),
            version: policy.pointee.version.map { text($0, limit: nameLimit) } ?? "",
            summary: policy.pointee.summary.map { text($0, limit: sentenceLimit) } ?? "",
            abi: policy.pointee.abi,
            events: policy.pointee.events,
            needs: policy.pointee.needs,
            options: PolicyOptionDescription.options(from: texts)
        )
        return (description, decide)
    }

    private static func create(
        _ policy: UnsafePointer<torpor_policy>,
        _ path: String,
        _ options: [PolicyOption]
    ) throws(PolicyFailure) -> UnsafeMutableRawPointer {
        let arena = CStrings(options.flatMap { [$0.key, $0.text] })
        let list = options.enumerated().map { index, option in
            torpor_policy_option(
                size: UInt32(MemoryLayout<torpor_policy_option>.size),
                type: option.type,
                key: arena[2 * index],
                text: arena[2 * index + 1],
                integer: option.integer,
                number: option.number
            )
        }
        var sentence = [CChar](repeating: 0, count: Int(TORPOR_POLICY_SENTENCE_LIMIT) + 1)
        let instance = withExtendedLifetime(arena) {
            list.withUnsafeBytes { bytes in
                var options = torpor_policy_options(
                    size: UInt32(MemoryLayout<torpor_policy_options>.size),
                    count: UInt32(list.count),
                    option_size: UInt32(MemoryLayout<torpor_policy_option>.stride),
                    reserved: 0,
                    options: bytes.baseAddress
                )
                return policy.pointee.create?(&options, &sentence, sentence.count)
            }
        }
        guard let instance else {
            sentence[sentence.count - 1] = 0
            let said = text(sentence, limit: sentenceLimit)
            throw PolicyFailure.refused(said.isEmpty ? "\(path) refused to start and gave no reason" : said)
        }
        return instance
    }
}

private let nameLimit = Int(TORPOR_POLICY_NAME_LIMIT)
private let sentenceLimit = Int(TORPOR_POLICY_SENTENCE_LIMIT)

/// The text up to its NUL or up to `limit` bytes.
private func text(_ start: UnsafePointer<CChar>, limit: Int) -> String {
    var count = 0
    while count < limit, start[count] != 0 { count += 1 }
    return PolicyText.clean(UnsafeRawBufferPointer(start: start, count: count), limit: limit)
}

/// C strings that are valid as long as this object exists.
private final class CStrings {
    private let bytes: UnsafeMutableBufferPointer<CChar>
    private let starts: [Int]

    init(_ texts: [String]) {
        var starts: [Int] = []
        var all: [CChar] = []
        for text in texts {
            starts.append(all.count)
            all += text.utf8.map { CChar(bitPattern: $0) }
            all.append(0)
        }
        bytes = .allocate(capacity: max(1, all.count))
        _ = bytes.initialize(from: all)
        self.starts = starts
    }

    subscript(index: Int) -> UnsafePointer<CChar> { UnsafePointer(bytes.baseAddress! + starts[index]) }

    deinit { bytes.deallocate() }
}

/// Collects the advice of a policy in this process.
private struct AdviceCollector {
    let limit: Int
    var event = 0
    private(set) var hasFlooded = false
    private(set) var advice: [PolicyAdvice] = []

    init(limit: Int) { self.limit = limit }

    mutating func add(_ given: torpor_policy_advice, _ reason: String) -> Int32 {
        guard advice.count < limit else {
            hasFlooded = true
            return -1
        }
        advice.append(
            PolicyAdvice(
                event: event,
                kind: given.kind,
                app: given.app,
                value: given.value,
                time: given.time,
                reason: reason
            )
        )
        return 0
    }
}

private func takeAdvice(
    _ reply: UnsafePointer<torpor_policy_reply>?,
    _ advice: UnsafePointer<torpor_policy_advice>?
) -> Int32 {
    guard let context = reply?.pointee.context, let advice,
        advice.pointee.size >= MemoryLayout<torpor_policy_advice>.size
    else { return -1 }
    let reason = advice.pointee.reason.map { text($0, limit: Int(TORPOR_POLICY_REASON_LIMIT)) } ?? ""
    return context.assumingMemoryBound(to: AdviceCollector.self).pointee.add(advice.pointee, reason)
}

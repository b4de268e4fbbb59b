// SPDX-License-Identifier: Apache-2.0

public import Lifecycle
import WireText

/// The table `[supervisor.memory]`: what torpord does when the machine is short of memory.
public struct MemorySpecification: Sendable, Hashable {
    /// Whether torpord frees memory when the machine is short of it.
    public var enabled = true
    /// The thresholds at which memory counts as short, and how long to wait after each step that frees memory.
    public var rules = MemoryRules()

    /// Creates a specification with default values.
    public init() {}

    static let keys: [Key<MemorySpecification>] = [
        .value("critical_available", \.rules.criticalAvailable, Self.part),
        .value("critical_stall", \.rules.criticalStall, Self.stall),
        .value("enabled", \.enabled, Read.boolean),
        .value("settling", \.rules.settling, Read.positiveDuration),
        .value("warning_available", \.rules.warningAvailable, Self.part),
        .value("warning_stall", \.rules.warningStall, Self.stall),
    ]

    static func read(_ context: Context, _ node: Node, into memory: inout MemorySpecification) {
        Read.table(context, node, keys, into: &memory)
        let rules = memory.rules
        if rules.criticalAvailable > rules.warningAvailable {
            context.error("critical_available must not be more than warning_available", at: node.position)
        }
    }

    @Sendable static func members(_ memory: MemorySpecification) -> [String: String] {
        [
            "critical_available": percent(memory.rules.criticalAvailable),
            "critical_stall": Quantity.text(memory.rules.criticalStall), "enabled": memory.enabled ? "true" : "false",
            "settling": Quantity.text(memory.rules.settling),
            "warning_available": percent(memory.rules.warningAvailable),
            "warning_stall": Quantity.text(memory.rules.warningStall),
        ]
    }

    static func percent(_ part: Double) -> String {
        let thousandths = Int((part * 100_000).rounded())
        return thousandths % 1000 == 0 ? "\(thousandths / 1000)%" : "\(Double(thousandths) / 1000)%"
    }

    /// Reads a percentage of the machine's memory, such as `"10%"`. Returns a fraction, 0 to 0.5.
    private static func part(_ context: Context, _ node: Node) -> Double? {
        guard case .string(let text) = node.value else { return context.expected("a percentage like \"10%\"", node) }
        guard text.hasSuffix("%"), let percent = Double(text.dropLast()), (0...50).contains(percent) else {
            context.error("\(quoted(text)) is not a share of memory: write \"0%\" to \"50%\"", at: node.position)
            return nil
        }
        return percent / 100
    }

    /// Reads a threshold, 10 ms to 1 s: how long tasks must wait for memory within each second so that memory counts as
    /// short. Below 10 ms, even a machine with enough memory would reach the threshold.
    private static func stall(_ context: Context, _ node: Node) -> Duration? {
        guard let time = Read.duration(context, node) else { return nil }
        guard time >= .milliseconds(10), time <= .seconds(1) else {
            context.error("must be from 10ms to 1s: it is a time within each second", at: node.position)
            return nil
        }
        return time
    }
}

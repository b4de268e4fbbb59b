// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import KeeperProtocol
public import Linux

extension Keeper {
    /// A connection to the torpor-keeper that started this process; nil if no torpor-keeper did. Removes
    /// torpor-keeper's variables from the environment, so that child processes do not use them.
    public static func fromEnvironment(loop: EventLoop) throws(Errno) -> Keeper? {
        let ended = ThisProcess.environment(KeeperProtocol.endedVariable).flatMap(Int64.init) ?? 0
        guard let descriptor = descriptorFromEnvironment() else { return nil }
        let keeper = try Keeper(descriptor: descriptor, loop: loop)
        if ended > 0 { keeper.earlierEnded = .milliseconds(ended) }
        return keeper
    }

    /// Whether this process was started by a keeper.
    public static var isAbove: Bool {
        guard let text = ThisProcess.environment(KeeperProtocol.socketVariable), let fd = Int32(text), fd > 2,
            ThisProcess.environment(KeeperProtocol.pidVariable).flatMap(Int32.init) == ThisProcess.parent
        else { return false }
        return Descriptor.isOpen(fd)
    }

    /// The suffix that the kernel appends to the path of a running executable that was replaced or deleted on disk.
    private static let deleted = " (deleted)"

    private static func descriptorFromEnvironment() -> Descriptor? {
        defer {
            ThisProcess.setEnvironment(KeeperProtocol.socketVariable, nil)
            ThisProcess.setEnvironment(KeeperProtocol.pidVariable, nil)
            ThisProcess.setEnvironment(KeeperProtocol.endedVariable, nil)
        }
        guard isAbove, let fd = ThisProcess.environment(KeeperProtocol.socketVariable).flatMap(Int32.init) else {
            return nil
        }
        try? Descriptor.setCloseOnExec(fd)
        return Descriptor(owning: fd)
    }

    /// The path of `torpor-keeper`: the value of `TORPOR_KEEPER` if set, else the directory of this program, else
    /// `../libexec/torpor`.
    public static func findProgram() -> String? {
        ThisProcess.companion("torpor-keeper", variable: "TORPOR_KEEPER")
    }

    /// Executes the keeper in this process; the keeper then starts this program again as its child, with `arguments`
    /// (without argument 0). Returns only on failure, with the reason.
    public static func become(arguments: [String]) -> String { become(arguments: arguments, state: nil) }

    /// Executes torpor-keeper in this process in place of the lost torpor-keeper, and passes the new one the
    /// descriptors to hold. The new torpor-keeper then starts a new torpord, which recovers. `lost` is the connection
    /// to the lost torpor-keeper, and knows how many times torpord was started so far. Returns only on failure, with
    /// the reason.
    public static func become(
        arguments: [String],
        holding: [(name: String, descriptors: [Int32])],
        lost: Keeper? = nil
    ) -> String {
        let hard = (try? ThisProcess.limit(7))?.hard ?? .max
        let limit = lost.map { (soft: min($0.appDescriptorLimit, hard), hard: hard) }
        let state = ResumeState(instance: max(lost?.instance ?? 1, 1), appDescriptorLimit: limit, held: holding)
        return become(arguments: arguments, state: state)
    }

    private static func become(arguments: [String], state: ResumeState?) -> String {
        guard let image = ThisProcess.executable else { return "cannot find the path of this program: mount /proc" }
        let own = image.hasSuffix(deleted) ? String(image.dropLast(deleted.count)) : image
        guard let keeper = findProgram() else {
            return "cannot find torpor-keeper beside \(own): install it there, or set TORPOR_KEEPER to its path"
        }
        var resume: [String] = []
        var passed: [Int32] = []
        defer { for descriptor in passed { try? Descriptor.setCloseOnExec(descriptor) } }
        var memory: Descriptor?
        if let state {
            do throws(Errno) {
                let file = try Memory.file(named: "torpor-resume")
                try Descriptor.writeAll(file.raw, state.encoded())
                for descriptor in state.held.flatMap(\.descriptors) + [file.raw] {
                    try Descriptor.setCloseOnExec(descriptor, false)
                    passed.append(descriptor)
                }
                resume = ["--resume", String(file.raw)]
                memory = file
            } catch {
                return "cannot hand over the held descriptors: \(error)"
            }
        }
        defer { withExtendedLifetime(memory) {} }
        let error = ThisProcess.execute(
            keeper,
            arguments: [keeper] + resume + [own] + arguments,
            environment: ThisProcess.environment
        )
        return "cannot run \(keeper): \(error)"
    }
}

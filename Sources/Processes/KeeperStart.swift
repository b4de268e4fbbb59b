public import EventLoop
import KeeperProtocol
public import Linux

extension Keeper {
    /// The keeper above this process; nil when there is none. Takes its variables out of the environment, so that
    /// nobody else takes them for theirs.
    public static func fromEnvironment(loop: EventLoop) throws(Errno) -> Keeper? {
        guard let descriptor = descriptorFromEnvironment() else { return nil }
        return try Keeper(descriptor: descriptor, loop: loop)
    }

    /// Whether a keeper has started this process.
    public static var isAbove: Bool {
        guard let text = ThisProcess.environment(KeeperProtocol.socketVariable), let fd = Int32(text), fd > 2,
            ThisProcess.environment(KeeperProtocol.pidVariable).flatMap(Int32.init) == ThisProcess.parent
        else { return false }
        return Descriptor.isOpen(fd)
    }

    private static func descriptorFromEnvironment() -> Descriptor? {
        defer {
            ThisProcess.setEnvironment(KeeperProtocol.socketVariable, nil)
            ThisProcess.setEnvironment(KeeperProtocol.pidVariable, nil)
        }
        guard isAbove, let fd = ThisProcess.environment(KeeperProtocol.socketVariable).flatMap(Int32.init) else {
            return nil
        }
        try? Descriptor.setCloseOnExec(fd)
        return Descriptor(owning: fd)
    }

    /// Where `torpor-keeper` is: `TORPOR_KEEPER`, else beside this program, else in `../libexec/torpor`.
    public static func findProgram() -> String? {
        if let path = ThisProcess.environment("TORPOR_KEEPER"), File.isExecutable(path) { return path }
        guard let own = ThisProcess.executable, let directory = File.parent(of: own) else { return nil }
        return [directory + "/torpor-keeper", directory + "/../libexec/torpor/torpor-keeper"]
            .first(where: File.isExecutable)
    }

    /// Becomes the keeper, which starts this program again below itself, with `arguments` (without argument 0).
    /// Returns only with the reason why not.
    public static func become(arguments: [String], holding: [(name: String, descriptors: [Int32])] = []) -> String {
        guard let own = ThisProcess.executable else { return "cannot find the path of this program: mount /proc" }
        guard let keeper = findProgram() else {
            return "cannot find torpor-keeper beside \(own): install it there, or set TORPOR_KEEPER to its path"
        }
        let error = ThisProcess.execute(
            keeper,
            arguments: [keeper, own] + arguments,
            environment: ThisProcess.environment
        )
        return "cannot run \(keeper): \(error)"
    }
}

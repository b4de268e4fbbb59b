import EventLoop
import Linux
import Processes
import Store

/// A start, or an apply, takes memory that nothing needs once it is over: texts, tables that have grown, pages of the
/// program that run once. It is given back then, once, so that an idle torpord is small and never woken for it.
extension Supervisor {
    private static let settlingTime = Duration.milliseconds(250)

    /// Gives memory back as soon as the launches that were begun are over.
    func restSoon() {
        if restTimer == nil { restTimer = try? loop.timer { [weak self] in self?.rest() } }
        restTimer?.arm(after: Self.settlingTime)
    }

    private func rest() {
        guard !keeper.isBusy else {
            restTimer?.arm(after: Self.settlingTime)
            return
        }
        restTimer = nil
        keeper.trim()
        Memory.release()
    }
}

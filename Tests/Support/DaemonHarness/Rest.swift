import Foundation
import Linux
package import Testing

extension Daemon {
    /// Daemon and keeper come to rest, and then sleep through two seconds.
    package func expectRest(at location: SourceLocation = #_sourceLocation) throws {
        let both = [pid, try torpord()]
        // What is being finished (closing the connection, giving memory back within half a second of the last
        // launch) is waited for, then nothing may come any more.
        func counts() -> [Int64?] { both.map(Truth.voluntarySwitches) }
        var waited = Pressure(on: .memory)?.someTotal
        var before = counts()
        try eventually("both came to rest") {
            usleep(600_000)
            let now = counts()
            defer { before = now }
            return now == before
        }
        // Where work waits for memory, whoever does that, the kernel tells, up to two seconds later, and it is looked
        // at: then nothing is at rest.
        for attempt in 0..<20 {
            if attempt > 0 {
                waited = Pressure(on: .memory)?.someTotal
                usleep(2_500_000)
            }
            before = counts()
            sleep(2)
            let after = counts()
            guard Pressure(on: .memory)?.someTotal == waited, let memory = MachineMemory(),
                memory.available > memory.total / 3
            else { continue }
            #expect(before.allSatisfy { $0 != nil })
            return #expect(after == before, "woke up at rest", sourceLocation: location)
        }
        Issue.record("the machine was short of memory all the time: nothing is at rest then", sourceLocation: location)
    }
}

// SPDX-License-Identifier: Apache-2.0

// Writes rows and events for ever, and says on standard output what the store says is written: to be killed.
import EventLoop
import Linux
import Store

final class Writer {
    let store: Store

    init(loop: EventLoop) {
        store = Store(path: CommandLine.arguments[1], machine: "m", boot: "b", loop: loop)
        store.onNotice = { ThisProcess.complain("\($0)") }
    }

    func start() {
        store.load { contents in
            let known = contents.apps["web"]?.restarts ?? 0
            try? ThisProcess.write("loaded \(known)\n")
            self.write(from: known)
        }
    }

    private func write(from first: Int64) {
        var number = first
        for _ in 0..<20 {
            number += 1
            var row = AppRow(name: "web")
            row.restarts = number
            store.save(row)
            var event = StoredEvent(at: Clock.realtimeMicroseconds(), app: "web", kind: "test", text: "\(number)")
            event.incarnation = number
            store.append(event)
        }
        let last = number
        store.flush(within: .seconds(60)) { written in
            if !written { ThisProcess.exit(1) }
            try? ThisProcess.write("\(last)\n")
            self.write(from: last)
        }
    }
}

let loop = try EventLoop()
let writer = Writer(loop: loop)
writer.start()
try loop.run()

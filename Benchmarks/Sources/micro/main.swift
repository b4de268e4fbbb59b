import Lifecycle

/// One walk of an app through the states, from the foreground to suspended and back: eight calls of the machine.
func walk(_ machine: inout AppMachine, _ now: inout Duration) -> Int {
    var actions = 0
    func count(_ list: [Action]?) { actions += list?.count ?? 0 }
    now += .milliseconds(10)
    count(try? machine.request(.suspend, now: now))
    count(machine.handle(.stopConfirmed, now: now))
    count(try? machine.request(.resume, now: now))
    count(machine.handle(.heartbeat, now: now))
    count(try? machine.request(.foreground, now: now))
    count(machine.handle(.heartbeat, now: now))
    count(try? machine.request(.interrupt(begin: true), now: now))
    count(try? machine.request(.interrupt(begin: false), now: now))
    return actions
}

var rules = AppRules()
rules.watchdog = .seconds(10)
var machine = AppMachine(rules: rules)
var now = Duration.seconds(1)
_ = try? machine.request(.start(background: false), now: now)
_ = machine.permitLaunch(now: now)
_ = machine.handle(.launched, now: now)
guard machine.state == .active else { fatalError("the app did not become active: \(machine.state)") }

let rounds = 200_000
var best = Duration.seconds(1_000)
var actions = 0
for _ in 0..<5 {
    let clock = ContinuousClock()
    let time = clock.measure { for _ in 0..<rounds { actions += walk(&machine, &now) } }
    best = min(best, time)
}
guard machine.state == .active, actions > rounds else { fatalError("the walk went wrong: \(machine.state)") }
let each = Double((best / (rounds * 8)).components.attoseconds) / 1e9
print("a call of the machine: \(Int(each)) ns (best of five runs of \(rounds * 8) calls)")

// What each transition pays so that the next torpord can go on from it.
let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 512, alignment: 8)
var bytes = 0
best = .seconds(1_000)
for _ in 0..<5 {
    let clock = ContinuousClock()
    let time = clock.measure {
        for _ in 0..<rounds {
            var record = RecordWriter(memory)
            machine.encode(into: &record)
            bytes = record.count
        }
    }
    best = min(best, time)
}
print("its record, \(bytes) bytes: \(Int(Double((best / rounds).components.attoseconds) / 1e9)) ns")

// SPDX-License-Identifier: Apache-2.0

/// What is measured by `density`, and for how long.
struct DensityPlan {
    /// How many apps are measured with every peer.
    let apps: Int
    /// So many may be tried to find the most that a peer holds.
    let steps: [Int]
    /// What the apps and who supervises them have of the machine's memory, in MiB.
    let memory: Int
    /// The size of the swap in zram, in MiB.
    let swap: Int
    /// The size of a swap file beside it, for what has no room in zram, in MiB; 0 for none.
    let swapFile: Int
    /// Apps that are asked constantly, and how often a second each.
    let hot = 10
    let rate = 20
    /// How often each of the others is asked: once in so many seconds.
    let pause: ClosedRange<Int>
    /// For how long it is asked before anything counts, and then.
    let warming: Int
    let seconds: Int
    /// With so many apps, which fit without any pressure, it is calm.
    let calmApps = 20
    /// In how many seconds an app looks through all of its data for what has expired; 0: never.
    let sweep: Int
    /// How long an answer may take.
    let limit = 20
    /// How much longer than when it is calm the 99th percentile may be with so many apps that they are said to be held.
    static let slower = 3.0
    /// The first port.
    static let port = 21_000

    init(_ bench: Bench) {
        swapFile = bench.swapFile
        // The apps have some 35 MiB each: a third of them fits.
        if bench.quick {
            (apps, memory, swap, pause, warming, seconds) = (100, 1_200, 1_800, 60...180, 4, 16)
            steps = bench.apps.isEmpty ? [60, 80, 100] : bench.apps
        } else {
            (apps, memory, swap, pause, warming, seconds) = (200, 2_400, 3_600, 120...360, 5, 30)
            steps = bench.apps.isEmpty ? [75, 100, 110, 120, 130, 145, 160, 200, 300, 450, 700] : bench.apps
        }
        sweep = 20
    }

    /// All numbers of apps that can come up, calm first.
    var all: [Int] { ([calmApps, apps] + steps).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.sorted() }
}

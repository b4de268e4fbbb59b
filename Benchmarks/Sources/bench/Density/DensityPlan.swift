// SPDX-License-Identifier: Apache-2.0

/// What `density` measures, and for how long.
struct DensityPlan {
    /// The number of apps measured with every peer.
    let apps: Int
    /// Numbers of apps to try when searching for the most that a peer holds.
    let steps: [Int]
    /// The memory for the apps and their supervisor, in MiB.
    let memory: Int
    /// The size of the swap in zram, in MiB.
    let swap: Int
    /// The size of a swap file for what does not fit into zram, in MiB; 0 for none.
    let swapFile: Int
    /// Hot apps, and the requests per second to each.
    let hot = 10
    let rate = 20
    /// Seconds between two requests to each of the other apps.
    let pause: ClosedRange<Int>
    /// Seconds of requests before the measurement, and during it.
    let warming: Int
    let seconds: Int
    /// The number of apps that fit without memory pressure ("calm").
    let calmApps = 20
    /// Seconds in which an app scans all of its data for expired entries; 0: never.
    let sweep: Int
    /// The longest time for a response, in seconds.
    let limit = 20
    /// Apps count as held if their 99th percentile is at most this many times the calm one.
    static let slower = 3.0
    /// The first port.
    static let port = 21_000

    init(_ bench: Bench) {
        swapFile = bench.swapFile
        // An app has some 35 MiB: a third of them fits.
        if bench.quick {
            (apps, memory, swap, pause, warming, seconds) = (100, 1_200, 1_800, 60...180, 4, 16)
            steps = bench.apps.isEmpty ? [60, 80, 100] : bench.apps
        } else {
            (apps, memory, swap, pause, warming, seconds) = (200, 2_400, 3_600, 120...360, 5, 30)
            steps = bench.apps.isEmpty ? [75, 100, 110, 120, 130, 145, 160, 200, 300, 450, 700] : bench.apps
        }
        sweep = 20
    }

    /// All numbers of apps that may be measured, calm first.
    var all: [Int] { ([calmApps, apps] + steps).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.sorted() }
}

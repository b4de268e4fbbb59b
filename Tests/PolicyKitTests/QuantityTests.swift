// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporPolicyKit

@Suite("Quantities and times")
struct QuantityTests {
    @Test(
        "durations are read as the configuration writes them",
        arguments: [
            ("500ms", 500_000), ("5s", 5_000_000), ("1.5s", 1_500_000), ("2min", 120_000_000),
            ("1h30m", 5_400_000_000), ("1h 30min", 5_400_000_000), ("1d", 86_400_000_000), ("7us", 7), ("7µs", 7),
            ("36500d", 3_153_600_000_000_000),
        ] as [(String, Int64)]
    )
    func durations(text: String, microseconds: Int64) {
        #expect(Quantity.duration(text) == .microseconds(microseconds))
    }

    @Test(
        "what is no duration is none",
        arguments: ["", "5", "s", "-5s", "5 s", "5x", "5s5s", "5s1h", "1.s", ".5s", "36501d", "99999999999999999999s"]
    )
    func noDurations(text: String) { #expect(Quantity.duration(text) == nil) }

    @Test(
        "sizes are read as the configuration writes them",
        arguments: [
            ("100B", 100), ("512K", 524_288), ("64MiB", 67_108_864), ("1.5KiB", 1536), ("1GB", 1_000_000_000),
            ("0B", 0),
        ] as [(String, UInt64)]
    )
    func sizes(text: String, bytes: UInt64) { #expect(Quantity.size(text) == bytes) }

    @Test("what is no size is none", arguments: ["", "64", "MiB", "64 MiB", "-1B", "9999999TiB", "1.KiB", "64mib"])
    func noSizes(text: String) { #expect(Quantity.size(text) == nil) }

    @Test("shares are percent", arguments: [("2%", 0.02), ("0.5%", 0.005), ("250%", 2.5), ("0%", 0)])
    func shares(text: String, share: Double) throws {
        let read = try #require(Quantity.share(text))
        #expect(abs(read - share) < 1e-12)
    }

    @Test("what is no share is none", arguments: ["", "2", "%", "-2%", "2 %", "2%%"])
    func noShares(text: String) { #expect(Quantity.share(text) == nil) }

    @Test("sizes and durations are said in words that people read")
    func words() {
        #expect(
            [0, 1023, 1024, 1536, 67_108_864, 10_995_116_277_760].map { Quantity.text($0) }
                == ["0 B", "1023 B", "1 KiB", "1.5 KiB", "64 MiB", "10 TiB"]
        )
        let durations: [Duration] = [
            .zero, .microseconds(5), .milliseconds(250), .seconds(40), .seconds(61), .seconds(7500), .seconds(90_000),
            .seconds(-61), .milliseconds(1500),
        ]
        #expect(
            durations.map(\.inWords)
                == ["0 s", "5 µs", "250 ms", "40 s", "1 min 1 s", "2 h 5 min", "1 d 1 h", "-1 min 1 s", "1 s"]
        )
    }

    @Test("times end at the ends of the clock, and do not overflow")
    func saturation() {
        let last = Time(microseconds: .max)
        let first = Time(microseconds: .min)
        #expect(last + .seconds(1) == last)
        #expect(first - .seconds(1) == first)
        #expect(first + .seconds(-1) == first)
        #expect(last - first == .microseconds(Int64.max))
        #expect(first - last == .microseconds(Int64.min))
        #expect(Duration.seconds(Int64.max).microseconds == .max)
        #expect(Duration.seconds(Int64.min).microseconds == .min)
        #expect(Time(microseconds: 5) + .microseconds(7) == Time(microseconds: 12))
        #expect(Time(microseconds: 5) - .microseconds(7) == Time(microseconds: -2))
    }
}

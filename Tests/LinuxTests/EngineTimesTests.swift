// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@Suite("What processes use of graphics cards") struct EngineTimesTests {
    /// In the words of i915 (Documentation/gpu/drm-usage-stats.rst) and of amdgpu on Linux 6.8.
    static func intel(_ render: UInt64, client: UInt64 = 7) -> String {
        """
        pos:\t0
        flags:\t02100002
        mnt_id:\t26
        ino:\t525
        drm-driver:\ti915
        drm-client-id:\t\(client)
        drm-pdev:\t0000:00:02.0
        drm-total-system0:\t8 MiB
        drm-engine-render:\t\(render) ns
        drm-engine-copy:\t2035071108 ns
        drm-engine-video:\t0 ns
        drm-engine-capacity-video:\t2
        drm-engine-video-enhance:\t0 ns

        """
    }

    static let radeon = """
        pos:\t0
        flags:\t02100002
        drm-driver:\tamdgpu
        pasid:\t32772
        drm-client-id:\t31
        drm-pdev:\t0000:0b:00.0
        drm-memory-vram:\t219860 KiB
        drm-engine-gfx:\t1048726190 ns
        drm-engine-dec:\t52120000 ns

        """

    private func engine(_ name: String, _ card: String = "0000:00:02.0") -> EngineTimes.Engine {
        EngineTimes.Engine(card: card, name: name)
    }

    @Test("The busiest engine is found, over all descriptors that are different uses")
    func shares() throws {
        var before = EngineTimes()
        // The third is another descriptor of the first use.
        let texts = [
            Self.intel(1_000_000_000), Self.intel(5_000_000, client: 8), Self.intel(1_000_000_000), Self.radeon,
        ]
        for text in texts {
            let isOne = before.add(text)
            #expect(isOne)
        }
        var after = EngineTimes()
        after.add(Self.intel(1_030_000_000))
        after.add(Self.intel(15_000_000, client: 8))
        after.add(Self.radeon)
        let busiest = try #require(after.busiest(since: before, over: .seconds(2)))
        #expect(busiest.engine == engine("render"))
        #expect(abs(busiest.share - 0.02) < 0.000_1)
        #expect(after.busiest(since: after, over: .seconds(2)) == nil)
        // A use that has begun in between counts whole; a clock that goes back counts nothing.
        #expect(after.busiest(since: EngineTimes(), over: .seconds(2))?.engine == engine("copy"))
        #expect(before.busiest(since: after, over: .seconds(2)) == nil)
        #expect(after.busiest(since: before, over: .zero) == nil)
    }

    @Test(
        "What is no account of a card is none",
        arguments: [
            "", "pos:\t0\n", "drm-driver:\ti915\n", "drm-engine-render:\t5 ns\n",
            "drm-client-id:\t4\ndrm-engine-render:\t5\n", "drm-client-id:\t4\ndrm-engine-render:\t-5 ns\n",
            "drm-client-id:\tx\ndrm-engine-render:\t5 ns\n", "drm-client-id:\t4\ndrm-engine-capacity-render:\t5 ns\n",
            "drm-client-id:\t4\ndrm-engine-render:\t99999999999999999999999 ns\n",
            // The driver xe counts in cycles.
            "drm-client-id:\t4\ndrm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\n",
        ]
    )
    func others(text: String) {
        var times = EngineTimes()
        let isOne = times.add(text)
        #expect(!isOne && times.nanoseconds.isEmpty)
    }

    @Test("A process that opens a card very often is bounded") func bounds() {
        var times = EngineTimes()
        for client in 0..<3000 { times.add(Self.intel(1, client: UInt64(client))) }
        #expect(times.nanoseconds.count == EngineTimes.most)
        var many = EngineTimes()
        many.add("drm-client-id:\t1\n" + (0..<1000).map { "drm-engine-e\($0):\t5 ns\n" }.joined())
        #expect(many.nanoseconds.count == 64)
    }

    @Test("Only descriptors of cards are read") func files() throws {
        let root = NSTemporaryDirectory() + "/torpor-proc-\(UUID().uuidString)"
        defer { try? File.removeTree(root) }
        for folder in ["/7/fd", "/7/fdinfo", "/8/fd", "/8/fdinfo"] { try File.makeDirectories(root + folder) }
        try File.link(root + "/7/fd/3", to: "/dev/dri/renderD128")
        try File.write(root + "/7/fdinfo/3", Self.intel(5))
        try File.link(root + "/7/fd/4", to: "/etc/passwd")
        try File.write(root + "/7/fdinfo/4", Self.radeon)
        try File.link(root + "/8/fd/0", to: "/dev/dri/card1")
        let times = EngineTimes.read([7, 8, 9], root: root)
        #expect(Set(times.nanoseconds.keys.map(\.engine.card)) == ["0000:00:02.0"])
        #expect(times.nanoseconds.count == 4)
    }
}

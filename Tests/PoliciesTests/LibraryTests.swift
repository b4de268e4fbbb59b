// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

/// What is no policy for this supervisor is refused with a sentence that says why, and what to do.
struct LibraryTests {
    private func table(_ number: Int, _ flags: [String] = []) throws -> String {
        try Libraries.path("table.c", ["-DTABLE=\(number)"] + flags)
    }

    private func sentence(_ path: String) throws -> String {
        let failure = try Hosts.failure(path)
        guard case .refused(let sentence) = failure else {
            Issue.record("not refused: \(failure)")
            return ""
        }
        #expect(sentence.hasPrefix(path + " "))
        return String(sentence.dropFirst(path.count + 1))
    }

    @Test func tablesOfEarlierAndLaterVersionsWork() throws {
        for (number, abi, reason) in [(1, 1, ""), (2, 8, "with a reason")] {
            let host = try Hosts.start(try table(number))
            #expect(host.description.abi == UInt32(abi))
            let answer = try host.ask([Hosts.event(TORPOR_EVENT_STATE, app: 1)], deadline: Hosts.patience)
            #expect(
                answer
                    == PolicyAnswer(
                        decided: 1,
                        advice: [PolicyAdvice(kind: 1, app: 1, value: 3, time: 4, reason: reason)]
                    )
            )
            // The earlier one has no destroy, whatever lies in its place.
            host.close()
            #expect(try Hosts.failure(host) == .ended(.exited(0), lastLine: ""))
        }
    }

    @Test func aPolicyThatNeedsALaterVersionIsRefused() throws {
        #expect(
            try sentence(try table(3))
                == "needs version 2 of the policy interface, and this supervisor has version 1: upgrade Torpor, or "
                + "install a version of the policy for it"
        )
    }

    @Test func aPolicyThatSaysNoIsRefused() throws {
        #expect(
            try sentence(try table(9))
                == "says that it cannot work with this supervisor, which has version 1 of the policy interface: install "
                + "a version of the policy that can"
        )
    }

    @Test func tablesThatNoVersionHasAreRefused() throws {
        #expect(
            try sentence(try table(4))
                == "describes itself in 8 bytes, which hold no version: build it against torpor_policy.h"
        )
        #expect(try sentence(try table(5)).contains("built for version 0 of the policy interface"))
        #expect(try sentence(try table(6)) == "has no create or no decide: a policy needs both")
        #expect(try sentence(try table(8)) == "has no create or no decide: a policy needs both")
        #expect(try sentence(try table(7)) == "needs a name of 1 to 63 bytes, and a version of at most 63")
    }

    @Test func missingFunctionsAreNamed() throws {
        #expect(try sentence(try table(10)) == "cannot be opened: undefined symbol: there_is_no_such_function")
        #expect(
            try sentence(try table(11)) == "is a library, but no policy: it has no function torpor_policy_entry"
        )
    }

    @Test func whatIsNoLibraryIsRefused() throws {
        let folder = try Libraries.makeFolder("none")
        try File.write(
            folder + "/text.so",
            "This is not a library, but a text of some length, as a download that failed."
        )
        try File.write(folder + "/empty.so", "")
        for name in ["/text.so", "/empty.so"] {
            #expect(
                try sentence(folder + name)
                    == "is not a library: it does not begin as ELF files do; build the policy as a shared library"
            )
        }
        // A program is an ELF file too, but one that cannot be opened so.
        try Libraries.compile(
            "gcc",
            ["-no-pie", "-x", "c", Libraries.sources + "dependency.c", "-o", folder + "/program", "-nostartfiles"]
        )
        #expect(
            try sentence(folder + "/program")
                == "is an ELF file, but not a library: build the policy as a shared library"
        )
    }

    /// The same library as if built elsewhere: byte 18 is the lower one of e_machine, byte 4 the class, 5 the order.
    @Test func librariesForOtherMachinesAreRefused() throws {
        let folder = try Libraries.makeFolder("machines")
        var bytes = try File.read(try Libraries.path("echo.c"))
        #if arch(x86_64)
        let (own, other, otherNumber) = ("x86_64", "aarch64", UInt8(183))
        #else
        let (own, other, otherNumber) = ("aarch64", "x86_64", UInt8(62))
        #endif
        bytes[18] = otherNumber
        try File.write(folder + "/other.so", bytes)
        #expect(
            try sentence(folder + "/other.so")
                == "is a library for \(other), and this machine is \(own): build the policy for \(own)"
        )
        (bytes[18], bytes[4]) = (3, 1)
        try File.write(folder + "/small.so", bytes)
        #expect(try sentence(folder + "/small.so").hasPrefix("is a 32-bit library for i386, and this machine is "))
        (bytes[4], bytes[5], bytes[18], bytes[19]) = (2, 2, 0, 22)
        try File.write(folder + "/big.so", bytes)
        #expect(try sentence(folder + "/big.so").hasPrefix("is a library for s390x, and this machine is "))
        (bytes[5], bytes[18], bytes[19]) = (1, 0x34, 0x12)
        try File.write(folder + "/unknown.so", bytes)
        #expect(try sentence(folder + "/unknown.so").hasPrefix("is a library for another machine (e_machine 4660)"))
    }

    /// Damaged in every way, it is refused or ends its own process; the supervisor's side stays whole.
    @Test func damagedLibrariesEndNobodyElse() throws {
        let folder = try Libraries.makeFolder("damaged")
        let bytes = try File.read(try Libraries.path("echo.c"))
        var random = SeededGenerator(seed: 7)
        var refused = 0
        for round in 0..<150 {
            var damaged = bytes
            // The headers are what is read before it is confined, and the dynamic section what names folders.
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let place =
                    Bool.random(using: &random)
                    ? Int.random(in: 16..<1024, using: &random) : Int.random(in: 0..<damaged.count, using: &random)
                damaged[place] = UInt8.random(in: .min ... .max, using: &random)
            }
            if round % 10 == 0 { damaged = Array(damaged.prefix(Int.random(in: 64..<damaged.count, using: &random))) }
            let path = folder + "/\(round).so"
            try File.write(path, damaged)
            do {
                let host = try Hosts.start(path)
                _ = try host.ask([Hosts.event(TORPOR_EVENT_STATE)], deadline: .seconds(2))
            } catch let failure as PolicyFailure {
                #expect(!"\(failure)".isEmpty)
                refused += 1
            }
        }
        #expect(refused > 20)
    }
}

/// Numbers that are the same in every run: SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import Linux

@Suite("Pending signals") struct PendingSignalTests {
    private func pending(_ text: String) -> UInt64 { Array(text.utf8).withUnsafeBytes { ProcFS.pendingSignals(in: $0) } }

    @Test("are those of the thread and of the process, and of no other field")
    func text() {
        let rest = "SigBlk:\tffffffffffffffff\nSigIgn:\t00000000000000ff\n"
        let head = "Name:\tSigPnd:\nUmask:\t0022\nSigQ:\t0/95936\n"
        #expect(pending(head + "SigPnd:\t0000000000000100\nShdPnd:\t8000000000040000\n" + rest) == 0x8000_0000_0004_0100)
        #expect(pending(head + "SigPnd:\t00000000deadbeef\nShdPnd:\t0000000000000000\n" + rest) == 0xdead_beef)
        #expect(pending(head + "SigPnd:\t0000000000000000\nShdPnd:\tabcdef0123456789") == 0xabcd_ef01_2345_6789)
        for none in ["", "\n", "SigPnd:", "SigPnd:\t", "ShdPnd:\t\n", head, head + rest] { #expect(pending(none) == 0) }
    }

    @Test("are read of a thread that blocks one")
    func ofThread() throws {
        var mask = sigset_t()
        var before = sigset_t()
        sigemptyset(&mask)
        sigaddset(&mask, SIGWINCH)
        pthread_sigmask(SIG_BLOCK, &mask, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let bit = UInt64(1) << UInt64(SIGWINCH - 1)
        let thread = Int32(gettid())
        #expect(try ProcFS.pendingSignals(ThisProcess.pid, task: thread) & bit == 0)
        pthread_kill(pthread_self(), SIGWINCH)
        #expect(try ProcFS.pendingSignals(ThisProcess.pid, task: thread) & bit != 0)
        var number: Int32 = 0
        sigwait(&mask, &number)
        #expect(number == SIGWINCH)
        #expect(throws: Errno.self) { try ProcFS.pendingSignals(Int32.max) }
    }
}

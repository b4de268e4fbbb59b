// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Threads for work that may block on a disk, which the event loop must not do. Such a thread blocks all signals,
/// because the event loop handles them.
public enum WorkerThread {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(_ name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Runs `body` on a new detached thread with a stack of 512 KiB. Throws EAGAIN if no thread or memory is left.
    ///
    /// - Parameter name: shown by ps -L and in /proc/PID/task/TID/comm; at most 15 bytes.
    public static func start(named name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
        var attributes = pthread_attr_t()
        try result(pthread_attr_init(&attributes))
        defer { pthread_attr_destroy(&attributes) }
        try result(pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED)))
        try result(pthread_attr_setstacksize(&attributes, 512 << 10))
        let box = Unmanaged.passRetained(Body(name, body))
        // Block all signals while the thread is created, because the new thread inherits this thread's signal mask.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        var thread = pthread_t()
        let code = pthread_create(
            &thread,
            &attributes,
            { argument in
                let body = Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                // Use PR_SET_NAME, because pthread_setname_np needs _GNU_SOURCE.
                _ = body.name.withCString { tlx_prctl(15, UInt(bitPattern: $0)) }
                body.run()
                return nil
            },
            box.toOpaque()
        )
        pthread_sigmask(SIG_SETMASK, &before, nil)
        if code != 0 { box.release() }
        try result(code)
    }

    /// Throws the error that a pthread function has returned. These functions return an error instead of setting errno.
    static func result(_ code: Int32) throws(Errno) {
        if code != 0 { throw Errno(rawValue: code) }
    }
}

/// A value that several threads share, protected by a mutex, with a condition variable to wait for changes.
///
/// Hold the lock only briefly, because `withLock` blocks every other caller.
public final class Monitor<State>: @unchecked Sendable {
    // The monitor can be Sendable, because `state` is accessed only while `mutex` is held. The mutex and the condition
    // variable are on the heap, because Swift may move a stored property in memory.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var state: State
    private var waiting = 0

    /// Creates a monitor that protects this value.
    public init(_ state: sending State) {
        self.state = state
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` while holding the lock.
    public func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state)
    }

    /// If exactly `count` threads are blocked in ``wait(until:for:)``, runs `body` and keeps these threads blocked
    /// until it returns. Otherwise returns false.
    public func whileAllWait(_ count: Int, _ body: () -> Void) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard waiting == count else { return false }
        body()
        return true
    }

    /// Wakes all threads in ``wait(until:for:)``.
    public func wake() { pthread_cond_broadcast(condition) }

    /// Waits until `body` returns a value. Calls `body` once before the first wait, and again after each `wake()`,
    /// always while holding the lock. Returns nil at `deadline` (CLOCK_MONOTONIC). `body` may change the deadline.
    public func wait<Result>(
        until deadline: Duration? = nil,
        for body: (inout State, _ deadline: inout Duration?) -> sending Result?
    ) -> sending Result? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        var deadline = deadline
        while true {
            if let result = body(&state, &deadline) { return result }
            guard let deadline else {
                waiting += 1
                pthread_cond_wait(condition, mutex)
                waiting -= 1
                continue
            }
            if Clock.monotonic() >= deadline { return nil }
            let parts = deadline.components
            var time = timespec(
                tv_sec: Int(clamping: parts.seconds),
                tv_nsec: Int(parts.attoseconds / 1_000_000_000)
            )
            waiting += 1
            pthread_cond_timedwait(condition, mutex, &time)
            waiting -= 1
        }
    }
}

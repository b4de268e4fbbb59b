// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A thread beside the event loop, for work that may block on a disk. The thread blocks all signals, which the event
/// loop handles.
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
        // Block all signals while the thread is created, because it inherits this thread's signal mask.
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
                // PR_SET_NAME, since pthread_setname_np needs _GNU_SOURCE.
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

    /// Throws the error that a pthread function returns, since these functions do not set errno.
    static func result(_ code: Int32) throws(Errno) {
        if code != 0 { throw Errno(rawValue: code) }
    }
}

/// A value shared by threads, under a mutex and with a condition to wait for changes.
///
/// Hold the lock only briefly: `withLock` blocks every other caller.
public final class Monitor<State>: @unchecked Sendable {
    // Sendable, since `state` is accessed only while `mutex` is held. The mutex and the condition are on the heap,
    // since Swift may move a stored property.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var state: State
    private var waiting = 0

    /// Creates a monitor of this value.
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

    /// Runs `body` under the lock.
    public func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state)
    }

    /// If exactly `count` threads are in ``wait(until:for:)``, runs `body` while all of them stay there. Otherwise
    /// returns false.
    public func whileAllWait(_ count: Int, _ body: () -> Void) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard waiting == count else { return false }
        body()
        return true
    }

    /// Wakes all threads in ``wait(until:for:)``.
    public func wake() { pthread_cond_broadcast(condition) }

    /// Waits until `body` returns a value, and calls `body` again after each `wake()`. Returns nil at `deadline`
    /// (CLOCK_MONOTONIC). `body` runs under the lock, also before the first wait, and may change the deadline.
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

// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Configuration
package import Linux
package import Policies
import TorporPolicyABI

/// Checks that ask a policy many questions.
extension Conformance {
    private static let seed: UInt64 = 20_260_101
    private var determinismQuestions: Int { min(2000, max(200, questions)) }
    private static let determinismApps = 40

    /// The time of a check. A slow policy is asked less than planned, so that all checks together take about a minute.
    private struct Allowance {
        let time: Duration
        private let end: Duration

        init(_ time: Duration) {
            self.time = time
            end = Clock.monotonic() + time
        }

        var isOver: Bool { Clock.monotonic() >= end }
        /// Whether half of the time is over.
        var isHalfOver: Bool { Clock.monotonic() >= end - time / 2 }
    }

    /// The time of a check; longer if a policy may take longer for an answer than torpord's default allows.
    private func allowance(_ seconds: Double) -> Allowance {
        let pace = max(0.1, deadline.inSeconds / PolicySpecification(name: "", path: "").deadline.inSeconds)
        return Allowance(.microseconds(Int64(min(1e12, seconds * pace * 1e6))))
    }

    // MARK: The same answers to the same questions

    /// Starts the policy in a new process, and returns its answers to a fixed series of questions, as many as it
    /// answers in time.
    package func answers(_ description: PolicyDescription) throws(Errno) -> Result<[PolicyAnswer], PolicyFailure> {
        let allowance = allowance(10)
        var world = try PolicyWorld(apps: Self.determinismApps, seed: Self.seed, wants: description.events)
        var sizes = SeededNumbers(seed: Self.seed + 1)
        var answers: [PolicyAnswer] = []
        do throws(PolicyFailure) {
            let host = try start(world.view)
            defer { host.close() }
            answers.append(try ask(host, [world.event(TORPOR_EVENT_STARTED.rawValue)], world.view))
            for _ in 0..<determinismQuestions where !allowance.isOver {
                let events = world.question(events: 1 + sizes.below(8))
                answers.append(try ask(host, events, world.view))
            }
            return .success(answers)
        } catch {
            return .failure(error)
        }
    }

    /// Asks another process the same questions, and compares the answers.
    func compare(
        _ first: Result<[PolicyAnswer], PolicyFailure>,
        _ description: PolicyDescription
    ) throws(Errno) {
        let name = "same answers"
        let second = try answers(description)
        switch (first, second) {
        case (.failure(let failure), _), (_, .failure(let failure)):
            report(name, .failed, "when it was asked about \(Self.determinismApps) apps, \(failure)")
        case (.success(let one), .success(let other)):
            let count = min(one.count, other.count)
            guard let index = one.indices.prefix(count).first(where: { one[$0] != other[$0] }) else {
                let text = "\(count) questions were answered in the same way by two processes"
                let planned = determinismQuestions + 1
                guard count < planned else { return report(name, .ok, text) }
                return report(name, .warning, text + Self.untried(planned - count, in: allowance(10)))
            }
            report(
                name,
                .failed,
                "two processes answered question \(index) of \(count) differently: "
                    + "\(Self.text(one[index])), then \(Self.text(other[index])); an answer may depend only on the "
                    + "view and earlier questions, not on a clock, random numbers or the order of a hash table"
            )
        }
    }

    /// The part of a result about the questions for which a slow policy left no time.
    private static func untried(_ count: Int, in allowance: Allowance) -> String {
        "; \(count) more were not asked, since the answers took \(Times.duration(seconds: allowance.time.inSeconds))"
    }

    private static func text(_ answer: PolicyAnswer) -> String {
        guard let advice = answer.advice.first else {
            return answer.decided == 0 ? "nothing" : "a decision without advice"
        }
        let value = advice.kind == TORPOR_ADVISE_GOAL.rawValue ? PolicyWords.state(advice.value) : "\(advice.value)"
        let more = answer.advice.count > 1 ? " and \(answer.advice.count - 1) more" : ""
        return "\(PolicyWords.advice(advice.kind)) \(value) for place \(advice.app) “\(advice.reason)”\(more)"
    }

    // MARK: Absurd views

    func show(_ absurd: AbsurdView, _ description: PolicyDescription) throws(Errno) {
        let view = try PolicyView()
        absurd.build(view)
        var kinds = PolicyWorld.kinds(of: description.events)
        if absurd.hasUnknownEvents {
            let first = UInt32(PolicyWords.events.count)
            kinds += (first..<64).filter { description.events >> UInt64($0) & 1 != 0 }
        }
        var asked = "nothing"
        var untried: [String] = []
        let allowance = allowance(2)
        do throws(PolicyFailure) {
            let host = try start(view)
            defer { host.close() }
            for kind in kinds {
                guard !allowance.isOver else {
                    untried.append(PolicyWords.event(kind))
                    continue
                }
                let events = absurd.events(kind, in: view)
                asked = PolicyWords.event(kind)
                for event in events { _ = try ask(host, [event], view) }
            }
            // Ask about all events in one question.
            let all = kinds.flatMap { absurd.events($0, in: view) }.prefix(HostMessages.mostEvents)
            asked = "everything at once"
            if !all.isEmpty, !allowance.isOver { _ = try ask(host, Array(all), view) }
            let text = "\(kinds.count - untried.count) kinds of event are answered"
            guard !untried.isEmpty else { return report("view: \(absurd.name)", .ok, text) }
            let rest = "; not asked, since the answers took too long: \(untried.joined(separator: ", "))"
            report("view: \(absurd.name)", .warning, text + rest)
        } catch {
            report("view: \(absurd.name)", .failed, "asked about \(asked), \(error)")
        }
    }

    // MARK: Time

    /// Warns if the median exceeds a tenth of the deadline, or if the 99th percentile exceeds half of it: on a busy
    /// machine, answers take longer.
    package func time(_ description: PolicyDescription) throws(Errno) {
        let apps = 1000
        let count = min(5000, max(100, questions))
        var world = try PolicyWorld(apps: apps, seed: Self.seed + 2, wants: description.events)
        var times: [Duration] = []
        let allowance = allowance(10)
        times.reserveCapacity(count)
        do throws(PolicyFailure) {
            let host = try start(world.view)
            defer { host.close() }
            _ = try ask(host, [world.event(TORPOR_EVENT_STARTED.rawValue)], world.view)
            while times.count < count, times.isEmpty || !allowance.isOver {
                let events = world.question(events: 1)
                let start = Clock.monotonic()
                let answer = try answer(host, events)
                times.append(Clock.monotonic() - start)
                judge.judge(answer, to: events, in: world.view)
            }
        } catch {
            return report("time", .failed, "with \(apps) apps, \(error)")
        }
        times.sort()
        let median = times[times.count / 2]
        let late = times[times.count * 99 / 100]
        let longest = times[times.count - 1]
        measured.append(("median_us", Double(median.microseconds)))
        measured.append(("p99_us", Double(late.microseconds)))
        measured.append(("longest_us", Double(longest.microseconds)))
        let text =
            "with \(apps) apps an answer takes \(Self.text(median)), 99 of 100 at most \(Self.text(late)), the longest "
            + Self.text(longest) + (times.count < count ? " (of \(times.count) answers)" : "")
        if late > deadline {
            report("time", .failed, "\(text): more than the deadline of \(Self.text(deadline))")
        } else if median > deadline / 10 || late > deadline / 2 {
            report("time", .warning, "\(text): on a busy machine it will miss its deadline of \(Self.text(deadline))")
        } else {
            report("time", .ok, text)
        }
    }

    package static func text(_ time: Duration) -> String {
        let microseconds = time.microseconds
        if microseconds >= 1_000_000 { return "\(Double(microseconds / 100_000) / 10) s" }
        if microseconds >= 1000 { return "\(Double(microseconds / 100) / 10) ms" }
        return "\(microseconds) us"
    }

    // MARK: Memory

    /// A policy may store data about apps, but after half of the questions it must not grow further.
    package func memory(_ description: PolicyDescription) throws(Errno) {
        let apps = 16
        let batch = HostMessages.mostEvents
        var world = try PolicyWorld(apps: apps, seed: Self.seed + 3, wants: description.events)
        var sizes: [Int64] = []
        let began = Clock.monotonic()
        // A user who asks for more questions than the default has more time.
        let allowance = allowance(30 * max(1, Double(questions) / 1_000_000))
        var asked = 0
        var askedBefore = 0
        do throws(PolicyFailure) {
            let host = try start(world.view)
            defer { host.close() }
            _ = try ask(host, [world.event(TORPOR_EVENT_STARTED.rawValue)], world.view)
            let before = Self.memory(of: host)
            sizes.append(before ?? 0)
            guard before != nil else {
                return report("memory", .warning, "the memory of its process cannot be read: mount /proc")
            }
            while asked < questions, askedBefore == 0 || !allowance.isOver {
                let events = world.question(events: min(batch, questions - asked))
                _ = try ask(host, events, world.view)
                asked += events.count
                if askedBefore == 0, asked >= questions / 2 || allowance.isHalfOver {
                    askedBefore = asked
                    sizes.append(Self.memory(of: host) ?? 0)
                }
                if asked % (batch * 256) < batch {
                    let size = Times.memory(bytes: Self.memory(of: host) ?? 0)
                    onProgress("memory: \(asked) of \(questions) questions, \(size)")
                }
            }
            sizes.append(Self.memory(of: host) ?? 0)
        } catch {
            return report("memory", .failed, "when it was asked many questions, \(error)")
        }
        let seconds = (Clock.monotonic() - began).inSeconds
        let rest = asked < questions ? Self.untried(questions - asked, in: allowance) : ""
        judgeMemory(sizes, seconds, asked, after: askedBefore, rest)
    }

    /// Compares the sizes of the process's memory before the questions, after half of them and after all of them.
    ///
    /// - Parameters:
    ///   - asked: the number of questions.
    ///   - askedBefore: the number of questions after which the memory was measured in between.
    ///   - rest: a text about the questions that were not asked; empty if all were.
    private func judgeMemory(
        _ sizes: [Int64],
        _ seconds: Double,
        _ asked: Int,
        after askedBefore: Int,
        _ rest: String
    ) {
        let growth = sizes[2] - sizes[1]
        let perQuestion = Double(growth) / Double(max(1, asked - askedBefore))
        for (name, size) in zip(["memory_before_bytes", "memory_between_bytes", "memory_after_bytes"], sizes) {
            measured.append((name, Double(size)))
        }
        measured.append(("questions", Double(asked)))
        let words = ["before", "after half of them", "after all"]
        let text =
            "\(asked) questions in \(Times.duration(seconds: seconds)): "
            + zip(sizes, words).map { "\(Times.memory(bytes: $0)) \($1)" }.joined(separator: ", ")
        // Small growth comes from the allocator and is not a leak.
        if growth > Self.leastGrowth, perQuestion > 1 {
            report("memory", .failed, "\(text): it grows by \(Int(perQuestion.rounded())) bytes with each question")
        } else {
            report("memory", rest.isEmpty ? .ok : .warning, text + rest)
        }
    }

    private static let leastGrowth: Int64 = 256 << 10

    /// Anonymous memory of the process in bytes (RssAnon, proc_pid_status(5)).
    private static func memory(of host: HostProcess) -> Int64? {
        guard let text = try? ProcFS.statusField(host.pid, "RssAnon"),
            let number = text.split(separator: " ").first.flatMap({ Int64($0) })
        else { return nil }
        return number * 1024
    }
}

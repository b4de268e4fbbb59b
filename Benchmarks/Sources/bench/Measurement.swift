// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A number that a measurement yields for each peer.
struct Figure {
    enum Better: String { case lower, higher }
    /// One word, unique in the run: `launch-1000`.
    let name: String
    /// The title for people: `launch of 1,000 apps`.
    let title: String
    let unit: String
    var better = Better.lower
    /// Its curve and the position on it: `launch` at 1,000.
    var curve: (name: String, apps: Int)?
}

/// A kind of work that every peer does in turn.
protocol Measurement {
    /// One word, for `--only`.
    var name: String { get }
    /// The conditions, in a sentence or two.
    func conditions(_ bench: Bench) -> String
    /// The figures that it yields.
    func figures(_ bench: Bench) -> [Figure]
    /// Whether it reuses supervisors through `Run.launched`. Before other measurements, those still running are
    /// ended.
    var takesStanding: Bool { get }
    /// Whether it runs only if `--only` names it.
    var isOnlyAsked: Bool { get }
    /// Measures, through `Run.interleave`.
    func measure(_ run: Run) throws
}

extension Measurement {
    var takesStanding: Bool { false }
    var isOnlyAsked: Bool { false }
}

/// The values of one figure for one peer and one way.
struct Row {
    let peer: String
    let way: String
    var values: [Double] = []

    var label: String { way.isEmpty ? peer : "\(peer) (\(way))" }
}

/// A remark beside the numbers: a peer is missing, has failed, or supports only a part.
struct Note {
    let measurement: String
    let peer: String
    let text: String
}

/// One run of the harness. The peers take turns, so that a slowdown of the machine affects all of them.
final class Run {
    let bench: Bench
    let peers: [any Peer]
    private(set) var rows: [String: [Row]] = [:]
    private(set) var notes: [Note] = []
    private var measurement = ""
    /// In a quick run: supervisors kept for further measurements, by peer and number of apps.
    private var standing: [String: Session] = [:]

    init(_ bench: Bench, _ peers: [any Peer]) {
        self.bench = bench
        self.peers = peers
    }

    func measure(_ measurement: any Measurement) throws {
        self.measurement = measurement.name
        if !measurement.takesStanding { end() }
        let titles = measurement.figures(bench).map(\.title)
        let more = titles.count > 12 ? " and \(titles.count - 12) more" : ""
        say("\(measurement.name): \(titles.prefix(12).joined(separator: ", "))\(more)")
        try measurement.measure(self)
    }

    /// Calls `body` for each peer in turn, `rounds` times. A peer that fails is noted with the reason and left out of
    /// further turns. `also`: peers of this measurement only.
    func interleave(
        _ what: String,
        rounds: Int,
        also others: [any Peer] = [],
        only isAsked: (any Peer) -> Bool = { _ in true },
        _ body: (any Peer) throws -> Void
    ) throws {
        for peer in others { if let missing = peer.missing { note(peer.name, "not measured: \(missing)") } }
        var left = (peers + others).filter { $0.missing == nil && isAsked($0) }
        for round in 1...max(1, rounds) {
            for peer in left {
                try Interruption.check()
                let began = now()
                do {
                    try body(peer)
                    let took = String(format: "%.1f", now() - began)
                    say("  \(what), \(round) of \(rounds): \(peer.name) (\(took) s)")
                } catch let error as Interrupted {
                    throw error
                } catch {
                    note(peer.name, "\(what): \(error)")
                    left.removeAll { $0.name == peer.name }
                }
            }
        }
    }

    /// Tries one way of several: a failure is noted, and the other ways continue.
    func attempt(_ peer: any Peer, _ what: String, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as Interrupted {
            throw error
        } catch {
            note(peer.name, "\(what): \(error)")
        }
    }

    /// Runs a session, and ends it even if `body` throws.
    func session<Result>(_ peer: any Peer, _ load: Workload, _ body: (Session) throws -> Result) throws -> Result {
        let session = try peer.prepare(bench, load)
        defer { session.end() }
        return try body(session)
    }

    /// A supervisor with all its plain workers running; `release` must follow. A quick run keeps it for the next
    /// measurement, which saves most of the launch times: at rest it hardly affects others.
    func launched(_ peer: any Peer, _ apps: Int) throws -> Session {
        let key = "\(peer.name) \(apps)"
        if let session = standing.removeValue(forKey: key), session.isRunning { return session }
        let session = try peer.prepare(bench, Workload(apps))
        do {
            try session.launch()
        } catch {
            session.end()
            throw error
        }
        return session
    }

    func release(_ session: Session) {
        let key = "\(session.peer.name) \(session.load.count)"
        if bench.quick, session.isRunning, standing[key] == nil { standing[key] = session } else { session.end() }
    }

    /// Calls `body` with such a supervisor, and ends it if `body` throws.
    func launched(_ peer: any Peer, _ apps: Int, _ body: (Session) throws -> Void) throws {
        let session = try launched(peer, apps)
        do {
            try body(session)
        } catch {
            session.end()
            throw error
        }
        release(session)
    }

    /// Ends all kept supervisors.
    func end() {
        for session in standing.values { session.end() }
        standing = [:]
    }

    func record(_ figure: String, _ peer: any Peer, way: String = "", _ values: Double...) {
        record(figure, peer, way: way, values: values)
    }

    func record(_ figure: String, _ peer: any Peer, way: String = "", values: [Double]) {
        var list = rows[figure] ?? []
        if let index = list.firstIndex(where: { $0.peer == peer.name && $0.way == way }) {
            list[index].values += values
        } else {
            list.append(Row(peer: peer.name, way: way, values: values))
        }
        rows[figure] = list
    }

    func note(_ peer: String, _ text: String) {
        guard !notes.contains(where: { $0.measurement == measurement && $0.peer == peer && $0.text == text }) else {
            return
        }
        say("  \(peer): \(text)")
        notes.append(Note(measurement: measurement, peer: peer, text: text))
    }
}

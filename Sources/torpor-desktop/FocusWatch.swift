// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import EventLoop
import Linux
import Varlink

/// Follows which process has the window with the focus, by the IPC socket of Sway or i3.
///
/// The window manager may come and go. Nothing blocks.
final class FocusWatch {
    let kind: DesktopFocus
    private let loop: EventLoop
    private let session: Session
    private let report: (DesktopReport) -> Void
    private var socket: Descriptor?
    private var source: IOSource?
    private var framer = WindowManagerMessage.Framer()
    /// The path of the socket.
    private var path = ""
    /// Paths whose window manager did not answer.
    private var silent: Set<String> = []
    /// Limits the wait for the first answer; then runs until the next try.
    private var timer: TimerSource?
    private var delay = FocusWatch.firstDelay
    private var isAnswered = false
    /// The tree was asked for, and whether it must be asked for again.
    private var asksForTree = false
    private var isUnsure = false

    /// For i3, which does not name the processes of windows.
    private var owners: WindowOwners?

    /// A window that is to get the focus.
    private struct Raising {
        var pids: Set<Int32>
        /// The windows that may be it, once the tree is known.
        var left: ArraySlice<ListedWindow>?
        /// The one whose process the X server was asked for.
        var asked: ListedWindow?
    }
    private var raising: Raising?

    /// What was reported last.
    private var focused: FocusedWindow?
    private var problem: String?

    private static let patience = Duration.seconds(2)
    private static let firstDelay = Duration.milliseconds(500)
    private static let longestDelay = Duration.seconds(10)
    /// The most sockets that are tried in a row.
    private static let mostSockets = 16

    init(_ loop: EventLoop, _ session: Session, _ kind: DesktopFocus, _ report: @escaping (DesktopReport) -> Void) {
        self.loop = loop
        self.session = session
        self.kind = kind
        self.report = report
        timer = try? loop.timer { [weak self] in self?.timeHasCome() }
        owners = WindowOwners(loop, session) { [weak self] window, pid in self?.found(window, pid) }
        connect()
    }

    deinit {
        source?.cancel()
        timer?.cancel()
    }

    /// To another torpord.
    func repeatReports() {
        if problem != nil || isAnswered { report(.following(problem: problem)) }
        if let focused { tell(focused) }
    }

    // MARK: The socket

    /// The sockets that there are: the one that the environment names, then the newest.
    private func paths() -> [String] {
        let folder = kind == .sway ? session.folder : session.folder + "/i3"
        let user = Users.effectiveUID
        let names = ((try? File.list(folder)) ?? []).filter { name in
            kind == .sway ? FocusSocket.isSway(name, user: user) : FocusSocket.isI3(name)
        }
        let found = names.compactMap { name -> (path: String, time: Int64)? in
            guard let status = try? File.status(folder + "/" + name, followLinks: false), status.uid == user else {
                return nil
            }
            return (folder + "/" + name, status.modifiedNanoseconds)
        }
        let named = kind == .sway ? session.sway : session.i3
        let newest = found.sorted { $0.time > $1.time }.map(\.path).filter { $0 != named }
        return Array(((named.map { [$0] } ?? []) + newest).prefix(Self.mostSockets))
    }

    private func connect() {
        for path in paths() where !silent.contains(path) {
            do throws(Errno) {
                let made = try Sockets.connect(path: path, nonBlocking: true)
                // Another user's window manager would decide which apps are in the foreground.
                guard try Sockets.peer(made.raw).uid == Users.effectiveUID else { continue }
                source = try loop.watch(made.raw, .readable) { [weak self] _ in self?.read() }
                socket = made
            } catch {
                continue
            }
            self.path = path
            framer = WindowManagerMessage.Framer()
            (isAnswered, asksForTree, isUnsure) = (false, false, false)
            timer?.arm(after: Self.patience)
            send(.subscribe, #"["window","workspace"]"#)
            return askForTree()
        }
        silent = []
        let name = kind == .sway ? "Sway" : "i3"
        fail("no \(name) of this user answers: its socket is not in \(session.folder)")
    }

    private func fail(_ sentence: String) {
        if problem != sentence {
            problem = sentence
            report(.following(problem: sentence))
        }
        // Its windows are gone with it.
        focus(on: .none)
        timer?.arm(after: delay)
        delay = min(delay * 2, Self.longestDelay)
    }

    private func timeHasCome() {
        timer?.disarm()
        guard socket != nil else { return connect() }
        silent.insert(path)
        hangUp()
        connect()
    }

    private func hangUp() {
        raising = nil
        source?.cancel()
        source = nil
        socket = nil
    }

    /// A window manager that restarts is back at once.
    private func lost() {
        hangUp()
        timer?.arm(after: isAnswered ? Self.firstDelay : delay)
        if !isAnswered { delay = min(delay * 2, Self.longestDelay) }
    }

    private func send(_ kind: WindowManagerMessage.Kind, _ payload: String = "") {
        guard let socket else { return }
        let bytes = WindowManagerMessage.bytes(kind, payload)
        // A few bytes at a time: there is no room only if it reads nothing at all.
        let sent = (try? Sockets.send(socket.raw, bytes)) ?? nil
        if sent != bytes.count { loop.later { [weak self] in self?.lost() } }
    }

    private func askForTree() {
        guard !asksForTree else {
            isUnsure = true
            return
        }
        asksForTree = true
        send(.tree)
    }

    private func read() {
        guard let socket else { return }
        do throws(Errno) {
            guard let bytes = try Descriptor.read(socket.raw, maximum: 256 << 10) else { return }
            guard !bytes.isEmpty else { return lost() }
            framer.append(bytes)
        } catch {
            return lost()
        }
        while self.socket != nil {
            do throws(WindowManagerMessage.Framer.Invalid) {
                guard let message = try framer.next() else { return }
                if let kind = message.kind { heard(kind, message.payload) }
            } catch {
                return give(up: "\(path) \(error)")
            }
        }
    }

    private func give(up sentence: String) {
        hangUp()
        fail(sentence)
    }

    // MARK: What it says

    private func heard(_ kind: WindowManagerMessage.Kind, _ payload: [UInt8]) {
        guard let json = try? JSON.parse(payload) else { return give(up: "\(path) sent what is no JSON") }
        switch kind {
        case .command, .subscribe: break
        case .tree:
            asksForTree = false
            if !isAnswered { answered() }
            if isUnsure {
                isUnsure = false
                return askForTree()
            }
            focus(on: FocusedWindow(tree: json))
            if raising != nil {
                raising?.left = ListedWindow.all(in: json)[...]
                raiseNext()
            }
        case .window, .workspace:
            switch FocusEvent(kind, json) {
            case .focused(let window):
                // The answer that is under way may be older.
                if asksForTree { isUnsure = true } else { focus(on: window) }
            case .unsure: askForTree()
            case .same: break
            }
        }
    }

    private func answered() {
        isAnswered = true
        timer?.disarm()
        delay = Self.firstDelay
        silent = []
        problem = nil
        report(.following(problem: nil))
    }

    private func focus(on window: FocusedWindow) {
        guard window != focused else { return }
        focused = window
        tell(window)
    }

    private func tell(_ window: FocusedWindow) {
        switch window {
        case .none: report(.focused(pid: nil))
        case .process(let pid): report(.focused(pid: pid))
        case .window(let id): owners?.ask(id)
        }
    }

    private func found(_ window: UInt32, _ pid: Int32?) {
        if let asked = raising?.asked, asked.window == .window(window) {
            raising?.asked = nil
            if let pid, raising?.pids.contains(pid) ?? false { raise(asked) } else { raiseNext() }
        }
        guard focused == .window(window) else { return }
        report(.focused(pid: pid))
        guard problem != owners?.problem else { return }
        problem = owners?.problem
        report(.following(problem: problem))
    }

    // MARK: Raising a window

    /// Gives the focus to the window of these processes that had it last. The events that follow report it.
    func raise(_ pids: [Int32]) {
        guard socket != nil else { return }
        raising = Raising(pids: Set(pids))
        askForTree()
    }

    /// Looks for the window among those that are left. i3 does not name processes: the X server is asked for one after
    /// the other.
    private func raiseNext() {
        while let next = raising?.left?.popFirst() {
            switch next.window {
            case .process(let pid): if raising?.pids.contains(pid) ?? false { return raise(next) }
            case .window(let id):
                raising?.asked = next
                owners?.ask(id)
                return
            case .none: break
            }
        }
        // Before the tree has come, none are left either.
        if raising?.left != nil, raising?.asked == nil { raising = nil }
    }

    private func raise(_ found: ListedWindow) {
        raising = nil
        // A window that has the focus keeps it.
        if found.window != focused { send(.command, "[con_id=\(found.container)] focus") }
    }
}

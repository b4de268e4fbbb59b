// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import EventLoop
import Linux
import Varlink

/// Follows which process owns the focused window, by the IPC socket of Sway or i3.
///
/// If the window manager ends, this object reconnects when it is back. No call here blocks.
final class FocusWatch {
    let kind: DesktopFocus
    private let loop: EventLoop
    private let session: Session
    private let report: (DesktopReport) -> Void
    private var socket: Descriptor?
    private var source: IOSource?
    private var framer = WindowManagerMessage.Framer()
    /// The path of the window manager's socket, and the process that listens there.
    private var path = ""
    private var manager: Int32?
    /// Paths of sockets on which no window manager answered.
    private var silent: Set<String> = []
    /// While connected, limits the wait for the first answer. Otherwise, fires for the next attempt to connect.
    private var timer: TimerSource?
    private var delay = FocusWatch.firstDelay
    private var isAnswered = false
    /// Whether a request for the window tree is pending. `isUnsure` is set if another request must follow the pending
    /// one.
    private var asksForTree = false
    private var isUnsure = false

    /// For i3, which does not report the processes of windows: asks the X server for them.
    private var owners: WindowOwners?

    /// A request to focus a window of these processes.
    private struct Raising {
        var pids: Set<Int32>
        /// The windows that are not examined yet, sorted by when they were last focused, the latest first; nil until
        /// the tree has arrived.
        var left: ArraySlice<ListedWindow>?
        /// The window whose process the X server is being asked for.
        var asked: ListedWindow?
    }
    private var raising: Raising?

    /// The window that was reported last; nil if none was since the window manager was reached.
    private var focused: FocusedWindow?
    private var problem: String?

    private static let patience = Duration.seconds(2)
    private static let firstDelay = Duration.milliseconds(500)
    private static let longestDelay = Duration.seconds(10)
    /// The most sockets that are tried, one after another.
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

    /// Sends the current state again, to a torpord that has just connected.
    func repeatReports() {
        if problem != nil || isAnswered { report(.following(problem: problem, manager: manager)) }
        if let focused { tell(focused) }
    }

    // MARK: The socket

    /// The paths of the sockets to try: first the one that the environment names, then the others from the newest to
    /// the oldest.
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
                // Check which user the window manager belongs to: that of another user could decide which apps count as
                // foreground.
                let peer = try Sockets.peer(made.raw)
                guard peer.uid == Users.effectiveUID else { continue }
                manager = peer.pid > 0 ? peer.pid : nil
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
        // Do not report that the focus was lost: it is unknown which window has it. With i3, the windows outlive the
        // window manager.
        focused = nil
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

    /// Called when the connection is lost. The next attempt follows soon, since a window manager may just be
    /// restarting.
    private func lost() {
        hangUp()
        timer?.arm(after: isAnswered ? Self.firstDelay : delay)
        if !isAnswered { delay = min(delay * 2, Self.longestDelay) }
    }

    private func send(_ kind: WindowManagerMessage.Kind, _ payload: String = "") {
        guard let socket else { return }
        let bytes = WindowManagerMessage.bytes(kind, payload)
        // Requests are a few bytes long: if they do not fit into the socket's buffer, the window manager no longer
        // reads.
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
                // The tree that is on its way may be older than this event: ask for the tree once more when it has
                // arrived.
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
        report(.following(problem: nil, manager: manager))
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
        report(.following(problem: problem, manager: manager))
    }

    // MARK: Raising a window

    /// Focuses the window of these processes that had the focus last. The window manager's events then report the new
    /// focus.
    func raise(_ pids: [Int32]) {
        guard socket != nil else { return }
        raising = Raising(pids: Set(pids))
        askForTree()
    }

    /// Examines the remaining windows for one of the wanted processes. For i3, asks the X server for the process of
    /// one window after another.
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
        // No window is left to examine. While `left` is nil, the tree has not arrived yet: keep waiting for it.
        if raising?.left != nil, raising?.asked == nil { raising = nil }
    }

    private func raise(_ found: ListedWindow) {
        raising = nil
        // Do nothing if the window has the focus already.
        if found.window != focused { send(.command, "[con_id=\(found.container)] focus") }
    }
}

// SPDX-License-Identifier: Apache-2.0

import DesktopRules
import EventLoop
import Linux

/// Asks the X server which processes own windows. Connects at the first question. If the connection is lost, connects
/// again at the next question.
final class WindowOwners {
    private let loop: EventLoop
    private let session: Session
    private let answer: (UInt32, Int32?) -> Void
    private var socket: Descriptor?
    private var source: IOSource?
    private var conversation = XConversation()
    /// The windows whose questions have no answer yet.
    private var open: [UInt32] = []
    /// Why the last question got no answer; nil if it was answered.
    private(set) var problem: String?

    init(_ loop: EventLoop, _ session: Session, _ answer: @escaping (UInt32, Int32?) -> Void) {
        self.loop = loop
        self.session = session
        self.answer = answer
    }

    deinit { source?.cancel() }

    func ask(_ window: UInt32) {
        open.append(window)
        if socket == nil { connect() }
        if socket != nil { send(conversation.ask(window)) }
    }

    private func connect() {
        guard let display = XCookie.display(session.display) else {
            return lost("DISPLAY \(session.display) is not on this machine")
        }
        let cookie = (try? File.read(session.cookies, limit: 1 << 20)).flatMap { XCookie(display: display, in: $0) }
        conversation = XConversation()
        do throws(Errno) {
            let made = try Sockets.connect(path: "/tmp/.X11-unix/X\(display)", nonBlocking: true)
            source = try loop.watch(made.raw, .readable) { [weak self] _ in self?.read() }
            socket = made
        } catch {
            return lost("display :\(display) cannot be reached: \(error)")
        }
        send(conversation.greeting(cookie))
    }

    private func send(_ bytes: [UInt8]) {
        guard let socket, !bytes.isEmpty else { return }
        let sent = (try? Sockets.send(socket.raw, bytes)) ?? nil
        if sent != bytes.count { loop.later { [weak self] in self?.lost("the X server does not read") } }
    }

    private func read() {
        guard let socket else { return }
        do throws(Errno) {
            guard let bytes = try Descriptor.read(socket.raw, maximum: 64 << 10) else { return }
            guard !bytes.isEmpty else { return lost("the X server is gone") }
            take(bytes)
        } catch {
            lost("the X server is gone: \(error)")
        }
    }

    private func take(_ bytes: [UInt8]) {
        do throws(XConversation.Invalid) {
            let (answers, next) = try conversation.receive(bytes)
            send(next)
            for found in answers {
                problem = nil
                open.removeAll { $0 == found.window }
                answer(found.window, found.pid)
            }
        } catch {
            lost("the X server \(error)")
        }
    }

    private func lost(_ why: String) {
        source?.cancel()
        source = nil
        socket = nil
        problem = why
        let unanswered = open
        open = []
        for window in unanswered { answer(window, nil) }
    }
}

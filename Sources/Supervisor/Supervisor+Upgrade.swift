import TorporAPI
import VarlinkServer

/// The programs on disk take charge in place of this torpord.
extension Supervisor {
    /// Answers whether the next instance will be started, before this one makes way.
    func upgrade(_ reply: Reply) {
        reply.send(UpgradeReply(ok: false, message: "this torpord cannot be replaced in place").json)
    }
}

import Configuration
import Linux
import TorporAPI
import Varlink

/// The connection to the supervisor, with failures as sentences and exit statuses.
struct Manager {
    private let client: VarlinkClient

    /// Connects to the socket that was named, or to the one that is found.
    init(socket: String?) throws(Failure) {
        let path = socket ?? Self.defaultSocket
        do throws(VarlinkClientError) {
            client = try VarlinkClient(path: path)
        } catch {
            throw Failure(
                status: .unknown,
                message: "\(error): start torpord, or name the socket of a running one with --socket"
            )
        }
    }

    /// The socket that is used when none is named.
    static var defaultSocket: String {
        if let path = ThisProcess.environment("TORPOR_MANAGER_SOCKET"), !path.isEmpty { return path }
        var environment: [String: String] = [:]
        for name in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME", "RUNTIME_DIRECTORY"] {
            environment[name] = ThisProcess.environment(name)
        }
        let user = SupervisorSpecification(environment: environment, userID: Users.effectiveUID)
        let own = user.runtimeDirectory + "/io.torpor"
        let system = "/run/torpor/io.torpor"
        return !File.exists(own) && File.exists(system) ? system : own
    }

    /// Calls; `onReply` gets every reply that others follow.
    @discardableResult
    func call(
        _ request: ManagerRequest,
        timeoutMilliseconds: Int32? = nil,
        onReply: (JSON) -> Void = { _ in }
    ) throws(Failure) -> JSON {
        do throws(VarlinkClientError) {
            return try client.callMore(request.call, timeoutMilliseconds: timeoutMilliseconds, onReply: onReply)
        } catch {
            throw Self.failure(error)
        }
    }

    /// Reads a reply, which a daemon of another version may have written.
    static func read<T>(_ body: () throws(FieldError) -> T) throws(Failure) -> T {
        do throws(FieldError) {
            return try body()
        } catch {
            throw Failure(
                status: .failed,
                message: "the supervisor's reply cannot be read (\(error)): are torpor and torpord of the same version?"
            )
        }
    }

    private static func failure(_ error: VarlinkClientError) -> Failure {
        guard case .service(let name, let parameters) = error else {
            return Failure(
                status: error == .timedOut ? .failed : .unknown,
                message: "\(error): is torpord still running?"
            )
        }
        let message = parameters["message"]?.stringValue
        switch name {
        case ManagerInterface.ErrorName.unknownApp:
            let app = parameters["name"]?.stringValue ?? "that"
            if app.hasPrefix("tag:") {
                let tag = app.dropFirst(4)
                return Failure(status: .unknown, message: "no app has the tag \(tag): ‘torpor list’ shows all apps")
            }
            if app.contains("*") || app.contains("?") {
                return Failure(status: .unknown, message: "no app fits \(app): ‘torpor list’ shows all apps")
            }
            let hint =
                parameters["nearest"]?.stringValue.map { "did you mean \($0)?" } ?? "‘torpor list’ shows all apps"
            return Failure(status: .unknown, message: "there is no app \(app): \(hint)")
        case VarlinkErrorName.invalidParameter:
            let parameter = parameters["parameter"]?.stringValue ?? "a parameter"
            return Failure(status: .usage, message: message ?? "the supervisor does not take \(parameter)")
        case VarlinkErrorName.methodNotFound, VarlinkErrorName.methodNotImplemented, VarlinkErrorName.interfaceNotFound:
            return Failure(
                status: .failed,
                message: "this supervisor cannot do that: torpord is older than torpor, upgrade it"
            )
        default: return Failure(status: .failed, message: message ?? "the supervisor answered \(name)")
        }
    }
}

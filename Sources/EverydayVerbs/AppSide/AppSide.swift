// SPDX-License-Identifier: Apache-2.0

package import AppConnection
package import CommandLinePages
import Linux
package import TorporAPI
package import Varlink

/// Functions of the verbs that an app's own processes use. These verbs talk to torpord over the app's own socket.
package enum AppSide {
    package static let environment = AppEnvironment()

    /// The path of the app's socket. Throws if this process does not belong to an app.
    package static func socket() throws(Failure) -> String {
        guard let socket = environment.socket else {
            throw Failure(
                status: .unknown,
                message: "TORPOR_APP_SOCKET is not set: this verb is for the processes of an app that torpord started"
            )
        }
        return socket
    }

    /// Makes a call. If the supervisor is replaced during the call, repeats it, which is safe because these requests
    /// have the same effect when carried out twice.
    package static func call(_ request: AppRequest) throws(Failure) -> JSON {
        let path = try socket()
        do throws(VarlinkClientError) {
            return try PersistentVarlinkClient(path: path).call { request.call }
        } catch {
            throw failure(error)
        }
    }

    /// Reads a file, or standard input for `-`, up to 1 GiB.
    package static func bytes(of file: String) throws(Failure) -> [UInt8] {
        _ = try socket()
        do throws(Errno) {
            return file == "-" ? try File.read(descriptor: 0, limit: 1 << 30) : try File.read(file, limit: 1 << 30)
        } catch {
            throw Failure(status: .usage, message: "\(file) cannot be read: \(error)")
        }
    }

    /// The maximum number of bytes that are sent in a message. Larger data is passed as a file in the state directory.
    private static let mostSent = 512 << 10

    /// Asks the supervisor to store data. Small data is sent as Base64, larger data as the name of a file that contains
    /// it.
    package static func save(
        _ bytes: [UInt8],
        as what: String,
        _ request: (_ data: String?, _ file: String?) -> AppRequest
    ) throws(Failure) -> JSON {
        if bytes.count <= mostSent { return try call(request(Base64.encode(bytes), nil)) }
        guard let folder = environment.stateDirectory else {
            throw Failure(status: .unknown, message: "TORPOR_STATE_DIRECTORY is not set: set it, or save less")
        }
        let name = ".\(what)-\(ThisProcess.pid)"
        defer { try? File.remove(folder + "/" + name) }
        do throws(Errno) {
            try File.write(folder + "/" + name, bytes, mode: 0o600)
        } catch {
            throw Failure(status: .failed, message: "the \(what) cannot be written to \(folder): \(error)")
        }
        return try call(request(nil, name))
    }

    static func failure(_ error: VarlinkClientError) -> Failure {
        switch error {
        case .service(VarlinkErrorName.methodNotFound, _), .service(VarlinkErrorName.interfaceNotFound, _),
            .service(VarlinkErrorName.methodNotImplemented, _):
            Failure(
                status: .failed,
                message: "this supervisor cannot do that: torpord is older than torpor, upgrade it"
            )
        case .service(AppInterface.ErrorName.unknownApp, let parameters): Manager.unknownApp(parameters)
        case .service(VarlinkErrorName.invalidParameter, _):
            Failure(status: .usage, message: Terminal.harmless("\(error)"))
        case .service: Failure(status: .failed, message: Terminal.harmless("\(error)"))
        default: Failure(status: .noSupervisor, message: "\(error): is torpord still running?")
        }
    }

    /// Finds a program on the PATH as a shell does. If there is none, fails with the exit status that a shell uses for
    /// that.
    package static func program(_ name: String) throws(Failure) -> String {
        if name.contains("/") {
            if File.isExecutable(name) { return name }
            if File.exists(name) {
                throw Failure(
                    status: .notExecutable,
                    message: "\(name) cannot be run: make it executable (chmod +x), or check that it is not a folder"
                )
            }
        } else {
            for folder in (ThisProcess.environment("PATH") ?? "/usr/bin:/bin").split(separator: ":") {
                let path = folder + "/" + name
                if File.isExecutable(path) { return path }
            }
        }
        throw Failure(status: .notFound, message: "there is no program \(name) to run: check its name and PATH")
    }

    /// Starts a program with this process's input and output.
    static func start(
        _ words: [String],
        variables: [String: String] = [:],
        descriptors: [(there: Int32, here: Int32)] = [(0, 0), (1, 1), (2, 2)]
    ) throws(Failure) -> ChildProcess {
        let path = try program(words[0])
        let inherited = ThisProcess.environment.filter { entry in
            !variables.keys.contains { entry.hasPrefix($0 + "=") }
        }
        do throws(Errno) {
            return try ChildProcess(
                path,
                arguments: words,
                environment: inherited + variables.map { "\($0.key)=\($0.value)" },
                descriptors: descriptors
            )
        } catch {
            throw Failure(status: .notExecutable, message: "\(words[0]) could not be run: \(error)")
        }
    }

    /// Starts a program in place of this process: the program gets the sockets and the watchdog that torpord gave to
    /// this process, so variables such as LISTEN_PID are set to the program's pid.
    static func startInPlace(_ words: [String]) throws(Failure) -> ChildProcess {
        let path = try program(words[0])
        let mine = "\(ThisProcess.pid)"
        do throws(Errno) {
            return try ChildProcess(
                path,
                arguments: words,
                environment: ThisProcess.environment,
                ownPID: ["LISTEN_PID", "WATCHDOG_PID"].filter { ThisProcess.environment($0) == mine }
            )
        } catch {
            throw Failure(status: .failed, message: "\(words[0]) could not be run: \(error)")
        }
    }

    /// Converts a wait status to an exit status as shells do: 128 + N for signal N.
    static func exitStatus(_ status: Int32) -> Int32 {
        WaitStatus.exitCode(status) ?? WaitStatus.signal(status).map { 128 + $0.number } ?? 1
    }
}

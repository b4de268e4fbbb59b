// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Devices that are not there (umockdev): a program that is started with ``environment`` finds them in /sys and /dev, and
/// hears of them as udev tells of devices. They end with this object, or with the process of the tests.
package final class MockDevices {
    /// What a program is started with, so that it sees them and no others.
    package private(set) var environment: [String: String]

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var rest = Data()

    private static let library = "libumockdev-preload.so.0"

    /// Why there can be none here; nil where there can.
    package static let obstacle: String? = {
        let look = Process()
        look.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        look.arguments = ["-c", "import gi; gi.require_version('UMockdev', '1.0'); from gi.repository import UMockdev"]
        look.standardError = FileHandle.nullDevice
        do { try look.run() } catch { return "there is no /usr/bin/python3" }
        look.waitUntilExit()
        return look.terminationStatus == 0 ? nil : "umockdev and gir1.2-umockdev-1.0 are not installed: make deps"
    }()

    private static let program = """
        import glob, json, os, select, socket, sys
        import gi
        gi.require_version('UMockdev', '1.0')
        from gi.repository import UMockdev

        class Bed:
            # umockdev dies where a listener's queue is full (net.unix.max_dgram_qlen), as that of one that is slow to read.
            def __init__(self): self.bed = UMockdev.Testbed.new()
            def __getattr__(self, name): return getattr(self.bed, name)

            def wait_for_room(self):
                for path in glob.glob(self.bed.get_root_dir() + '/event*'):
                    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
                        try: listener.connect(path)
                        except OSError: continue
                        if not select.select([], [listener], [], 60)[1]: raise Exception('nobody reads at ' + path)

            def uevent(self, *words):
                self.wait_for_room()
                self.bed.uevent(*words)

            def add_device(self, *words):
                self.wait_for_room()
                return self.bed.add_device(*words)

        bed = Bed()
        print(json.dumps({'ok': bed.get_root_dir()}), flush=True)

        def add(subsystem, name, parent=None, attributes=None, properties=None):
            flat = lambda table: [text for pair in (table or {}).items() for text in pair]
            return bed.add_device(subsystem, name, parent, flat(attributes), flat(properties))

        def again(subsystem, name, **more):
            # What the kernel does when it is plugged in.
            path = add(subsystem, name, **more)
            bed.uevent(path, 'add')
            return path

        def remove(path):
            bed.uevent(path, 'remove')
            bed.remove_device(path)

        def set(path, **attributes):
            for key, value in attributes.items(): bed.set_attribute(path, key, value)
            bed.uevent(path, 'change')

        for line in sys.stdin:
            try:
                names = globals()
                names['ret'] = None
                exec(json.loads(line), names)
                answer = {'ok': names['ret']}
            except Exception as error:
                answer = {'error': repr(error)}
            print(json.dumps(answer), flush=True)

        """

    /// Makes a world without devices.
    ///
    /// - Parameter guarded: runs what makes a process, where that must not happen at any time.
    package init(guarded: (() throws -> Void) throws -> Void = { try $0() }) throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-c", Self.program]
        process.standardInput = input
        process.standardOutput = output
        process.environment = ProcessInfo.processInfo.environment.merging(["LD_PRELOAD": Self.library]) { $1 }
        environment = [:]
        try guarded { [process] in try process.run() }
        let folder = try answer()
        environment = ["LD_PRELOAD": Self.library, "UMOCKDEV_DIR": folder]
    }

    deinit {
        // Another process may have inherited the pipe: its end alone may not be seen.
        _ = try? run("bed = None")
        // It may have inherited that SIGTERM is blocked.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Runs Python on the other side; what it assigns to `ret` comes back.
    @discardableResult
    package func run(_ python: String) throws -> String {
        let line = try JSONSerialization.data(withJSONObject: python, options: .fragmentsAllowed) + [10]
        try input.fileHandleForWriting.write(contentsOf: line)
        return try answer()
    }

    private func answer() throws -> String {
        while true {
            if let end = rest.firstIndex(of: 10) {
                let line = rest[..<end]
                rest.removeSubrange(...end)
                let object = try JSONSerialization.jsonObject(with: line) as? [String: Any] ?? [:]
                if let error = object["error"] { throw DevicesTrouble("\(error)") }
                return object["ok"] as? String ?? ""
            }
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { throw DevicesTrouble("the mock ended") }
            rest += piece
        }
    }
}

/// Something that keeps the mock from its work.
package struct DevicesTrouble: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

// SPDX-License-Identifier: Apache-2.0

import MockLogind

/// BlueZ as python-dbusmock plays it (its template bluez5), on a bus of its own, with characteristics of devices and what
/// BlueZ asks of programs, which the template has not.
package final class MockBlueZ {
    private let mock: MockLogind

    /// What a program finds the bus by.
    package var address: String { mock.address }

    /// Why there can be none here; nil where there can.
    package static var obstacle: String? { MockLogind.obstacle }

    /// Starts the bus, without BlueZ.
    package init(guarded: (() throws -> Void) throws -> Void = { try $0() }) throws {
        mock = try MockLogind(guarded: guarded)
        try mock.run(Self.program)
    }

    /// Runs Python on the other side.
    @discardableResult
    package func run(_ python: String) throws -> String { try mock.run(python) }

    /// BlueZ with an adapter.
    package func start() throws { try mock.run("start_bluez()") }

    /// BlueZ is gone.
    package func stop() throws { try mock.run("stop_bluez()") }

    /// A device that is known and not connected.
    package func add(_ device: String, _ name: String, services: [String] = []) throws {
        let list = services.map { "'\($0)'" }.joined(separator: ", ")
        try mock.run("add_device('\(device)', '\(name)', [\(list)])")
    }

    /// It comes, or goes.
    package func connect(_ device: String, _ isConnected: Bool = true) throws {
        try mock.run("bluez.\(isConnected ? "ConnectDevice" : "DisconnectDevice")('hci0', '\(device)')")
    }

    /// It has a service with a characteristic.
    package func add(_ characteristic: String, in service: String, of device: String) throws {
        try mock.run("add_characteristic('\(device)', '\(service)', '\(characteristic)')")
    }

    /// The characteristic has another value.
    package func say(_ value: [UInt8], of device: String) throws { try mock.run("say('\(device)', \(value))") }

    /// Whether somebody asked for its values.
    package func isNotifying(_ device: String) throws -> Bool { try mock.run("ret = notifying('\(device)')") == "true" }

    /// BlueZ asks the program of that connection.
    package func ask(_ method: String, of name: String) throws { try mock.run("ask('\(name)', '\(method)')") }

    private static let program = """
        global bluez, start_bluez, stop_bluez, add_device, add_characteristic, say, notifying, ask, place
        bluez = None
        GATT = 'org.bluez.Gatt'

        def start_bluez():
            global bluez
            bluez = mockobject.DBusMockObject(connection, '/', 'org.bluez', {}, logfile=os.devnull,
                                              is_object_manager=True)
            mockobject.objects['/'] = bluez
            bluez.AddTemplate('bluez5', {})
            bluez.AddAdapter('hci0', 'here')
            connection.request_name('org.bluez')

        def stop_bluez():
            global bluez
            connection.release_name('org.bluez')
            for path in list(mockobject.objects):
                try: mockobject.objects.pop(path).remove_from_connection()
                except LookupError: pass
            bluez = None

        def place(device): return '/org/bluez/hci0/dev_' + device.replace(':', '_')

        def add_device(device, name, services):
            bluez.AddDevice('hci0', device, name)
            mockobject.objects[place(device)].UpdateProperties(
                'org.bluez.Device1', {'UUIDs': dbus.Array(services, signature='s')})

        def add_object(path, interface, properties, methods):
            bluez.AddObject(path, interface, properties, methods)
            bluez.EmitSignal('org.freedesktop.DBus.ObjectManager', 'InterfacesAdded', 'oa{sa{sv}}',
                             [dbus.ObjectPath(path), {interface: properties}])

        def add_characteristic(device, service, characteristic):
            at = place(device) + '/service0010'
            add_object(at, GATT + 'Service1', {'UUID': service, 'Device': dbus.ObjectPath(place(device))}, [])
            add_object(at + '/char0011', GATT + 'Characteristic1',
                       {'UUID': characteristic, 'Service': dbus.ObjectPath(at),
                        'Value': dbus.Array([], signature='y'), 'Notifying': False},
                       [('StartNotify', '', '', ''), ('StopNotify', '', '', '')])

        def say(device, value):
            mockobject.objects[place(device) + '/service0010/char0011'].UpdateProperties(
                GATT + 'Characteristic1', {'Value': dbus.Array(value, signature='y')})

        def notifying(device):
            calls = mockobject.objects[place(device) + '/service0010/char0011'].call_log
            return any(call[1] == 'StartNotify' for call in calls)

        def ask(name, method):
            connection.call_async(name, '/app/service0/char0', GATT + 'Characteristic1', method, 'a{sv}', ({},),
                                  lambda *answer: None, lambda error: None)
        """
}

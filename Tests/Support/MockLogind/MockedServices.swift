// SPDX-License-Identifier: Apache-2.0

/// Other services of a machine, as python-dbusmock plays them: what ``MockLogind/run(_:)`` has to run first.
extension MockLogind {
    /// NetworkManager with a device for wireless networks: `start_manager()`, `stop_manager()`, `join(name)`, `leave()`.
    package static let networks = """
        global nm, start_manager, stop_manager, join, leave, device, active
        nm = device = active = None

        def start_manager():
            global nm, device
            nm = mockobject.DBusMockObject(connection, '/org/freedesktop', 'org.freedesktop', {}, logfile=os.devnull,
                                           is_object_manager=True)
            mockobject.objects['/org/freedesktop'] = nm
            nm.AddTemplate('networkmanager', {})
            device = nm.AddWiFiDevice('wlan', 'wlan0', 100)
            connection.request_name('org.freedesktop.NetworkManager')

        def stop_manager():
            connection.release_name('org.freedesktop.NetworkManager')
            for path in list(mockobject.objects):
                try: mockobject.objects.pop(path).remove_from_connection()
                except LookupError: pass

        def join(name):
            global active
            point = '/org/freedesktop/NetworkManager/AccessPoint/' + name
            if point not in mockobject.objects:
                nm.AddAccessPoint(device, name, name, '00:23:f8:7e:12:bb', 2, 2425, 5400, 82, 0)
                nm.AddWiFiConnection(device, name, name, '')
            active = nm.AddActiveConnection([device], '/org/freedesktop/NetworkManager/Settings/' + name, point, 'one', 2)

        def leave(): nm.RemoveActiveConnection(device, active)
        """

    /// iio-sensor-proxy: `start_proxy(side)`, `stop_proxy()`, and `turn(side)` and `near(is_near)` for what it reports.
    package static let sensors = """
        global proxy, start_proxy, stop_proxy
        proxy = None

        def start_proxy(side):
            global proxy
            proxy = mockobject.DBusMockObject(connection, '/net/hadess/SensorProxy', 'net.hadess.SensorProxy', {},
                                              logfile=os.devnull)
            mockobject.objects['/net/hadess/SensorProxy'] = proxy
            proxy.AddTemplate('iio-sensors-proxy', {'has_accelerometer': True, 'accelerometer_orientation': side, 'has_proximity': True})
            connection.request_name('net.hadess.SensorProxy')

        def stop_proxy():
            connection.release_name('net.hadess.SensorProxy')
            mockobject.objects.pop('/net/hadess/SensorProxy').remove_from_connection()

        def turn(side): proxy.SetInternalProperty('net.hadess.SensorProxy', 'AccelerometerOrientation', side)

        def near(is_near): proxy.SetInternalProperty('net.hadess.SensorProxy', 'ProximityNear', dbus.Boolean(is_near))
        """
}

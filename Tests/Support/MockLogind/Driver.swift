// SPDX-License-Identifier: Apache-2.0

/// The other side of ``MockLogind``: a bus of its own, and python-dbusmock's logind on it, moved by what is read from
/// standard input: each line is Python, and is answered by one line.
enum Driver {
    static let bus = """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
          <type>system</type>
          <listen>unix:path=@F/bus</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow user="*"/>
            <allow own="*"/>
            <allow send_type="method_call"/>
            <allow send_type="signal"/>
            <allow send_requested_reply="true" send_type="method_return"/>
            <allow send_requested_reply="true" send_type="error"/>
            <allow receive_type="method_call"/>
            <allow receive_type="signal"/>
            <allow receive_type="method_return"/>
            <allow receive_type="error"/>
          </policy>
        </busconfig>

        """

    static let program = """
        import ctypes, json, os, signal, subprocess, sys
        import dbus, dbus.bus, dbus.service, dbus.mainloop.glib, dbusmock
        from dbusmock import mockobject
        from gi.repository import GLib

        folder = sys.argv[1]
        LOGIN = 'org.freedesktop.login1'
        OBJECT = '/org/freedesktop/login1'
        MANAGER = LOGIN + '.Manager'
        BUS = 'org.freedesktop.DBus'
        dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
        daemon = connection = manager = None
        mockobject.inhibitors = []

        def start_bus():
            global daemon, connection
            words = ['dbus-daemon', '--config-file=' + folder + '/bus.conf', '--nofork', '--nopidfile', '--print-address']
            daemon = subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))
            daemon.stdout.readline()
            connection = connect()

        def stop_bus():
            stop_logind()
            daemon.kill()
            daemon.wait()

        def connect():
            made = dbus.bus.BusConnection('unix:path=' + folder + '/bus')
            made.set_exit_on_disconnect(False)
            return made

        def start_logind(delay=5000000, sleeping=False):
            global manager
            manager = mockobject.DBusMockObject(connection, OBJECT, MANAGER, {}, logfile=os.devnull)
            manager.AddTemplate('logind', {'PreparingForSleep': sleeping})
            manager.AddProperties(MANAGER, {'InhibitDelayMaxUSec': dbus.UInt64(delay)})
            for kind, type in (('User', 'u'), ('Session', 's'), ('Seat', 's')):
                manager.methods[MANAGER].pop('Get' + kind, None)
                manager.AddMethod(MANAGER, 'Get' + kind, type, 'o', finder(kind))
            connection.request_name(LOGIN)

        def finder(kind):
            def find(self, key):
                path = OBJECT + '/' + kind.lower() + '/' + str(key)
                if path not in mockobject.objects:
                    raise dbus.exceptions.DBusException('there is no ' + str(key), name=LOGIN + '.NoSuch' + kind)
                return path
            return find

        def stop_logind():
            global manager
            if manager is None: return
            for path in list(mockobject.objects):
                try: mockobject.objects.pop(path).remove_from_connection()
                except LookupError: pass
            try: manager.remove_from_connection()
            except LookupError: pass
            try: connection.release_name(LOGIN)
            except dbus.exceptions.DBusException: pass
            manager = None

        def sleep(begins):
            manager._set_property(MANAGER, 'PreparingForSleep', dbus.Boolean(begins))
            manager.EmitSignal(MANAGER, 'PrepareForSleep', 'b', [begins])

        def add_session(id, uid, seat='seat0'):
            path = manager.AddSession(id, seat, uid, 'user%d' % uid, True)
            display(uid, id)
            manager.EmitSignal(MANAGER, 'SessionNew', 'so', [id, dbus.ObjectPath(path)])

        def display(uid, id):
            name(mockobject.objects[OBJECT + '/user/%d' % uid], 'User', 'Display', id)

        def name(object, kind, property, id):
            path = OBJECT + '/session/' + id if id else '/'
            object._set_property(LOGIN + '.' + kind, property, (id, dbus.ObjectPath(path)))
            # Named as changed, without the value: logind does that as well.
            object.EmitSignal(BUS + '.Properties', 'PropertiesChanged', 'sa{sv}as', [LOGIN + '.' + kind, {}, [property]])

        def front(seat, id): name(mockobject.objects[OBJECT + '/seat/' + seat], 'Seat', 'ActiveSession', id)

        def remove_session(id, uid):
            display(uid, '')
            mockobject.objects.pop(OBJECT + '/session/' + id).remove_from_connection()
            manager.EmitSignal(MANAGER, 'SessionRemoved', 'so', [id, dbus.ObjectPath(OBJECT + '/session/' + id)])

        def change(path, kind, property, value):
            mockobject.objects[OBJECT + path].UpdateProperties(LOGIN + '.' + kind, {property: value})

        def hint(id, locked): change('/session/' + id, 'Session', 'LockedHint', dbus.Boolean(locked))

        def tell(id, member):
            mockobject.objects[OBJECT + '/session/' + id].EmitSignal(LOGIN + '.Session', member, '', [])

        def clients():
            # Connections that are neither the mock's nor the one that asks.
            names = connection.get_object(BUS, '/org/freedesktop/DBus').ListNames(dbus_interface=BUS)
            return [n for n in names if n.startswith(':') and n != connection.get_unique_name()]

        def as_stranger(path, interface, member, *arguments):
            # To each connection alone, as anybody on the bus may send it.
            others = clients()
            other = connect()
            for client in others:
                message = dbus.lowlevel.SignalMessage(path, interface, member)
                message.set_destination(client)
                for argument in arguments: message.append(argument)
                other.send_message(message)
            other.flush()
            other.close()

        def hear(source, condition):
            line = sys.stdin.readline()
            if not line:
                loop.quit()
                return False
            try:
                names = globals()
                names['ret'] = None
                exec(json.loads(line), names)
                answer = {'ok': names['ret']}
            except Exception as error:
                answer = {'error': repr(error)}
            print(json.dumps(answer), flush=True)
            return True

        import dbus.lowlevel
        GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, hear)
        start_bus()
        print(json.dumps({'ok': 'begun'}), flush=True)
        loop = GLib.MainLoop()
        loop.run()
        if daemon: daemon.kill()

        """
}

# SPDX-License-Identifier: Apache-2.0
# A notification server of python-dbusmock on the session's bus, and anything else on it that a test wants: each line of
# standard input is Python, as a JSON string, and is answered by one line. Arguments: the capabilities, if it is to be
# there from the beginning.
import json
import os
import sys

import dbus
import dbus.bus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from dbusmock import mockobject
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
connection = server = None
shown = []
closed = []
updates = []


def connect():
    made = dbus.bus.BusConnection(os.environ["DBUS_SESSION_BUS_ADDRESS"])
    made.set_exit_on_disconnect(False)
    return made


def plain(value):
    if isinstance(value, dbus.Boolean):
        return bool(value)
    if isinstance(value, (int, dbus.Byte)):
        return int(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def start(capabilities="", failing=False, takes=False):
    """The server comes, with a connection of its own. It may take the name of another."""
    global connection, server
    connection = connect()
    server = mockobject.DBusMockObject(connection, PATH, NAME, {}, logfile=os.devnull)
    server.AddTemplate("notification_daemon", {"capabilities": capabilities})
    # The template has the wrong type here, and notes nothing.
    for name in ("CloseNotification", "Notify"):
        server.methods[NAME].pop(name)
    server.AddMethod(NAME, "CloseNotification", "u", "", close)
    server.AddMethod(NAME, "Notify", "susssasa{sv}i", "u", refuse if failing else notify)
    flags = dbus.bus.NAME_FLAG_ALLOW_REPLACEMENT
    connection.request_name(NAME, flags | (dbus.bus.NAME_FLAG_REPLACE_EXISTING if takes else 0))


def lose(summary):
    """The server answers no request to show this."""

    def filter(_connection, message):
        isIt = message.get_member() == "Notify" and summary in message.get_args_list()
        handled, other = dbus.lowlevel.HANDLER_RESULT_HANDLED, dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
        return handled if isIt else other

    connection.add_message_filter(filter)


def refuse(self, *arguments):
    raise dbus.exceptions.DBusException("there are too many", name="org.example.Excess")


def notify(self, app, replaces, icon, summary, body, actions, hints, timeout):
    number = replaces or self.next_id
    self.next_id = max(self.next_id, number + 1)
    names = ("app", "replaces", "icon", "summary", "body", "actions", "hints", "timeout", "number")
    values = (app, replaces, icon, summary, body, actions, hints, timeout, number)
    shown.append({name: plain(value) for name, value in zip(names, values)})
    return dbus.UInt32(number)


def close(self, number):
    closed.append(int(number))
    emit("NotificationClosed", "uu", number, 3)


def emit(member, signature, *arguments):
    server.EmitSignal(NAME, member, signature, list(arguments))


def stop():
    global connection, server
    if server is not None:
        server.remove_from_connection()
        connection.close()
    mockobject.objects.clear()
    connection = server = None


def as_stranger(member, signature, *arguments):
    """To each other connection alone, as anybody on the bus may send it."""
    other = connect()
    bus = other.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus")
    for name in bus.ListNames(dbus_interface="org.freedesktop.DBus"):
        if name.startswith(":") and name != other.get_unique_name():
            message = dbus.lowlevel.SignalMessage(PATH, NAME, member)
            message.set_destination(name)
            message.append(*arguments, signature=signature)
            other.send_message(message)
    other.flush()
    other.close()


def follow_badges():
    """As a dock does."""
    dock = connect()
    dock.add_signal_receiver(
        lambda uri, values: updates.append([str(uri), plain(values)]), "Update", "com.canonical.Unity.LauncherEntry"
    )
    globals()["dock"] = dock


def hear(_source, _condition):
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    names = globals()
    names["ret"] = None
    try:
        exec(json.loads(line), names)
        answer = {"ok": names["ret"]}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
    return True


if len(sys.argv) > 1:
    start(sys.argv[1])
GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, hear)
print(json.dumps({"ok": "begun"}), flush=True)
GLib.MainLoop().run()

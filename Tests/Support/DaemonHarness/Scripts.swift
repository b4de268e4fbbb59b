// SPDX-License-Identifier: Apache-2.0

/// Small programs that tests supervise.
package enum Scripts {
    /// How Python is started: without site packages, which takes a third of the time.
    package static let python = #"exec = ["/usr/bin/python3", "-S", "#

    /// `tp.py`, which every program of a test can import.
    package static let helper = #"""
        import array, os, select, signal, socket, sys, time
        HERE = os.path.dirname(os.path.abspath(__file__))
        APP = os.environ.get("TORPOR_APP", "none")

        def record(text):
            fd = os.open(HERE + "/rec." + APP, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            os.write(fd, (text + "\n").encode())
            os.close(fd)

        def notify(text, fds=()):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                ancillary = []
                if fds:
                    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                s.sendmsg([text.encode()], ancillary, 0, os.environ["NOTIFY_SOCKET"])

        def on(name, action=None):
            def handler(number, frame):
                record(name)
                if action:
                    action()
            signal.signal(getattr(signal, name), handler)

        def wait():
            # Not signal.pause: a signal in the moment before it, after Python has looked, would wait for the next one.
            heard, bell = os.pipe()
            os.set_blocking(bell, False)
            signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
            while True:
                select.select([heard], [], [])
                os.read(heard, 4096)

        def fork(work, session=False, double=False):
            pid = os.fork()
            if pid == 0:
                if session:
                    os.setsid()
                if double and os.fork():
                    os._exit(0)
                try:
                    work()
                finally:
                    os._exit(0)
            if double:
                os.waitpid(pid, 0)
            return pid

        def await_file(name):
            while not os.path.exists(HERE + "/" + name):
                time.sleep(0.005)
        """#
}

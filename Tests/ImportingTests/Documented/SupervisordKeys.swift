// SPDX-License-Identifier: Apache-2.0

/// The keys that supervisord's documentation of its configuration file has, each with a value that means something.
enum SupervisordKeys {
    static let sections: [(section: String, keys: String)] = [
        (
            "supervisord",
            """
            logfile=/tmp/supervisord.log
            logfile_maxbytes=10MB
            logfile_backups=3
            loglevel=debug
            pidfile=/run/supervisord.pid
            umask=027
            nodaemon=true
            silent=true
            minfds=65536
            minprocs=400
            nocleanup=true
            childlogdir=/tmp
            user=www-data
            directory=/srv
            strip_ansi=true
            environment=KEY="value"
            identifier=other
            """
        ),
        ("unix_http_server", "file=/tmp/s.sock\nchmod=0700\nchown=www-data\nusername=u\npassword=p"),
        ("inet_http_server", "port=127.0.0.1:9001\nusername=u\npassword=p"),
        (
            "supervisorctl",
            "serverurl=unix:///tmp/s.sock\nusername=u\npassword=p\nprompt=mine\nhistory_file=/tmp/h"
        ),
        ("rpcinterface:x", "supervisor.rpcinterface_factory = my.package:make\nretries=1"),
        ("ctlplugin:x", "supervisor.ctl_factory = my.package:make"),
        ("include", "files=none.conf"),
        ("group:g", "programs=web\npriority=5"),
    ]

    /// Of `[program:x]`, each with what it needs beside it to mean something.
    static let program: [(key: String, beside: String)] = [
        ("command=/bin/other", ""), ("process_name=%(program_name)s_%(process_num)02d", ""), ("numprocs=2", ""),
        ("numprocs_start=5", "numprocs=2\n"), ("priority=5", ""), ("autostart=false", ""), ("startsecs=7", ""),
        ("startretries=9", ""), ("autorestart=true", ""), ("exitcodes=0,2", ""), ("stopsignal=INT", ""),
        ("stopwaitsecs=3", ""), ("stopasgroup=true", ""), ("killasgroup=false", ""), ("user=www-data", ""),
        ("redirect_stderr=true", "stderr_logfile=/var/log/e\n"), ("stdout_logfile=/var/log/o", ""),
        ("stdout_logfile_maxbytes=1MB", ""), ("stdout_logfile_backups=2", ""), ("stdout_capture_maxbytes=1MB", ""),
        ("stdout_events_enabled=true", ""), ("stdout_syslog=true", ""), ("stderr_logfile=/var/log/e", ""),
        ("stderr_logfile_maxbytes=1MB", ""), ("stderr_logfile_backups=2", ""), ("stderr_capture_maxbytes=1MB", ""),
        ("stderr_events_enabled=true", ""), ("stderr_syslog=true", ""), ("environment=A=\"b\"", ""),
        ("directory=/srv", ""), ("umask=027", ""), ("serverurl=unix:///tmp/s.sock", ""),
    ]

    /// Sections that are no programs, with a key that only they have.
    static let others = [
        "[eventlistener:x]\ncommand=/bin/x\nbuffer_size=10\nevents=PROCESS_STATE\nresult_handler=a:b\n",
        "[fcgi-program:x]\ncommand=/bin/x\nsocket=tcp://localhost:9000\nsocket_backlog=5\nsocket_owner=u\nsocket_mode=0700\n",
    ]
}

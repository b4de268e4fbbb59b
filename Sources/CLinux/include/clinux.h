/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CLINUX_H
#define TORPOR_CLINUX_H

// Functions that Swift's `import Glibc` lacks or that Swift cannot call; each comment says why. They are implemented
// in C files, because _GNU_SOURCE must not apply to the module's other importers. On failure all return -1 and set
// errno, like libc's functions.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/// The sender of a message or the peer of a connection (struct ucred needs _GNU_SOURCE).
typedef struct {
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
} tlx_credentials;

/// pidfd_open, which Swift's Glibc lacks. The descriptor is close-on-exec.
int tlx_pidfd_open(pid_t pid, unsigned int flags);
/// pidfd_send_signal, which Swift's Glibc lacks.
int tlx_pidfd_send_signal(int pidfd, int signo);
/// Sends SIGKILL to a whole process group. PIDFD_SIGNAL_PROCESS_GROUP has no name in older headers.
int tlx_pidfd_kill_group(int pidfd);
/// The number of bytes to reserve for a pid as text with its NUL.
#define TLX_PID_ROOM 12
/// Starts a program and writes its pid as text into its environment, at each of `places`, a list that ends with NULL.
/// Each place has TLX_PID_ROOM bytes. Returns the child's pid, or -1.
pid_t tlx_spawn_with_own_pid(const char *path, char *const arguments[], char *const environment[], char *const places[]);
/// Starts a program with the descriptors in `standard` as standard input, output and error. The kernel kills the
/// program when the calling thread ends (PR_SET_PDEATHSIG, which posix_spawn cannot set). Returns the child's pid, or
/// -1.
pid_t tlx_spawn_dependent(const char *path, char *const arguments[], char *const environment[], const int standard[3]);
/// close_range needs _GNU_SOURCE.
int tlx_close_range(unsigned int first, unsigned int last, int flags);
/// memfd_create needs _GNU_SOURCE; always close-on-exec, sealing allowed.
int tlx_memfd_create(const char *name);
/// Seals a memfd against changes of its size and later writable mappings (F_ADD_SEALS needs _GNU_SOURCE).
int tlx_memfd_seal(int fd);
/// Seals a memfd against changes of its size only (F_ADD_SEALS needs _GNU_SOURCE).
int tlx_memfd_bound(int fd);
/// process_madvise and process_mrelease, which have no wrapper in older libcs.
ssize_t tlx_process_madvise(int pidfd, const struct iovec *ranges, size_t count, int advice);
int tlx_process_mrelease(int pidfd);
/// MADV_COLD and MADV_PAGEOUT, which Swift's Glibc does not import.
extern const int tlx_madv_cold, tlx_madv_pageout;

/// recvmsg with control messages, since Swift cannot import the CMSG macros. Never blocks (MSG_DONTWAIT); descriptors
/// are close-on-exec. Accepts up to *fd_count descriptors, closes further ones, and stores how many it accepted
/// there. credentials->uid is ~0 if the message has no credentials. *truncated: bit 0 is set if data was truncated,
/// bit 1 if control data was.
ssize_t tlx_receive(int fd, void *buffer, size_t size, int *fds, size_t *fd_count, tlx_credentials *credentials,
                    int *truncated, int peek);
/// Discards the next datagram, and closes the descriptors that came with it.
int tlx_drop(int fd);
/// Starts (1) or stops (0) a timer that interrupts this thread with SIGALRM every 5 ms. Does nothing if no timer can
/// be created.
void tlx_promptly(int begins);
/// sendmsg with at most 253 descriptors, since Swift cannot import the CMSG macros. Uses MSG_NOSIGNAL, and never
/// blocks if `wait` is 0.
ssize_t tlx_send(int fd, const void *buffer, size_t size, const int *fds, size_t fd_count, int wait);
/// The peer's credentials (SO_PEERCRED), which getsockopt returns as a struct ucred.
int tlx_peer_credentials(int fd, tlx_credentials *credentials);
/// The supplementary groups of the peer (SO_PEERGROUPS). Returns their number: if it exceeds `capacity`, call again
/// with more room.
int tlx_peer_groups(int fd, uint32_t *groups, size_t capacity);
/// bind with a Unix address: in Swift, struct sockaddr_un contains a tuple of 108 characters. A leading '@' means an
/// abstract name.
int tlx_unix_bind(int fd, const char *path, size_t length);
int tlx_unix_connect(int fd, const char *path, size_t length);
/// O_PATH, which needs _GNU_SOURCE.
extern const int tlx_o_path;
/// openat2 with O_PATH, which has no wrapper in libc. Follows a final symlink if `follow` is 1. Uses only what the
/// kernel has cached: fails with EAGAIN if it would need a disk, a server, or an update of a symlink's access time.
int tlx_open_path_cached(const char *path, int follow);
/// Creates a Unix socket: in Swift's Glibc, SOCK_STREAM and its flags are an enum. Kind: 0 stream, 1 datagram, 2
/// seqpacket.
int tlx_unix_socket(int kind, int non_blocking);
int tlx_unix_pair(int kind, int fds[2]);
/// accept4 needs _GNU_SOURCE.
int tlx_accept(int fd);
/// TCP connections and listening sockets, non-blocking, for readiness checks and socket activation. Addresses must be
/// numeric: there is no getaddrinfo.
int tlx_tcp_connect(const char *address, uint16_t port);
int tlx_tcp_listen(const char *address, uint16_t port, int backlog, int reuse_port);
int tlx_socket_error(int fd);
int tlx_tcp_port(int fd);
/// An address (IPv4 as ::ffff:a.b.c.d) and a port, in host byte order. In C, since Swift does not import the headers
/// of socket diagnostics, with their macros and structures.
typedef struct {
    uint64_t high, low;
    uint16_t port;
} tlx_tcp_end;
typedef struct {
    uint32_t inode;
    /// For ESTABLISHED, milliseconds since data last moved; for TIME_WAIT, until the state expires. UINT32_MAX if the
    /// kernel does not report it.
    uint32_t milliseconds;
    tlx_tcp_end local, remote;
    /// The TCP state, one of tlx_tcp_….
    uint8_t state;
    /// For LISTEN on IPv6: whether the socket accepts no IPv4 connections.
    uint8_t is_v6_only;
} tlx_tcp_socket;
enum { tlx_tcp_established = 1, tlx_tcp_time_wait = 6, tlx_tcp_listening = 10 };
int tlx_diagnostics_socket(void);
/// The same, for the network namespace of the process `pidfd`. The socket is opened by a thread that enters the namespace
/// and ends, so that this thread never leaves its own. Returns -1 with EPERM if this process may not enter the
/// namespace, EINVAL before Linux 5.8, ESRCH if the process has ended.
int tlx_diagnostics_socket_of(int pidfd);
/// Opens a netlink socket that becomes readable when a route of this network namespace was added or removed.
int tlx_route_socket(void);
/// Reads the queued messages about routes. Returns 1 if a route to other machines was added or messages were lost,
/// otherwise 0.
int tlx_route_news(int fd);
/// Opens an rtnetlink socket that becomes readable when a network interface is added, removed or changed.
int tlx_link_socket(void);
/// Reads the queued messages about network interfaces. Returns 1 if an interface may have changed, otherwise 0.
int tlx_link_news(int fd);
/// Asks the kernel for the TCP sockets of this network namespace with this IP version (4 or 6) and these states (a
/// set of 1 << tlx_tcp_…). tlx_tcp_answer then reads the answer in parts: it returns how many sockets were written to
/// `to`, which has room for tlx_tcp_piece, and whether this was the last part.
int tlx_tcp_ask(int netlink, int version, uint32_t states);
ssize_t tlx_tcp_answer(int netlink, tlx_tcp_socket *to, int *is_last);
enum { tlx_tcp_piece = 512 };

/// Finds the user at the other end of a TCP connection. Returns 1 and the user that accepted the connection; 0 if the
/// other end is on another machine. Fails with ENOENT if the other end is on this machine, but the connection is not
/// accepted, is closed already, or the kernel does not report the user.
int tlx_tcp_peer_user(int fd, uint32_t *user);

// Sockets that apps inherit (listening.c).
enum { tlx_bind_ipv4, tlx_bind_ipv6, tlx_bind_vsock, tlx_bind_unix };
enum { tlx_stage_make, tlx_stage_option, tlx_stage_bind };
enum {
    tlx_option_keep_alive,
    tlx_option_no_delay,
    tlx_option_defer_accept,
    tlx_option_broadcast,
    tlx_option_pass_credentials,
    tlx_option_packet_info,
    tlx_option_priority,
    tlx_option_receive_buffer,
    tlx_option_send_buffer,
};
typedef struct {
    int family;
    int kind;  // as for tlx_unix_socket
    const char *address;
    const char *interface;  // for a link-local address
    uint32_t port;
    uint32_t cid;
    int ipv6_only;  // -1: the system's default
    int reuse_port;
    int free_bind;
    int transparent;
    const char *device;
} tlx_bind_plan;
/// Creates and binds a socket, since Swift cannot import sockaddr_vm and some socket options. `stage` receives the
/// step that failed.
int tlx_bound_socket(const tlx_bind_plan *plan, int *stage);
/// Duplicates another process's descriptor (pidfd_getfd) if it is a socket bound to the address in `plan`; otherwise
/// ENOENT. For Unix sockets `address` is the path, or @ and the name.
int tlx_copy_bound(int pidfd, int fd, const tlx_bind_plan *plan);
int tlx_set_socket_option(int fd, int option, int value);
/// Sets the mode that the file of a Unix socket gets when the socket is bound. The umask reduces it further.
int tlx_socket_inode_mode(int fd, unsigned int mode);
/// Sets owner and group of an open file, even one opened with O_PATH, which fchown(2) rejects; ~0 leaves a value
/// unchanged.
int tlx_set_owner(int fd, uint32_t user, uint32_t group);
/// Makes this thread access files with the rights of this user and these supplementary groups (setfsuid(2)), until
/// tlx_act_as_before. Fails with EPERM if that is not permitted; then nothing has changed.
int tlx_act_as(uint32_t user, uint32_t group, const uint32_t *groups, size_t count);
void tlx_act_as_before(void);
/// While tlx_act_as is in effect: 1 switches to the process's own rights, 0 back to those of the other user.
/// Otherwise does nothing.
void tlx_act_as_oneself(int on);
/// Makes the socket drop all packets (1), by a filter (SO_ATTACH_FILTER), or removes that filter (0).
int tlx_hold_back(int fd, int on);
/// Reads how many connections wait in a listening socket's backlog, and the backlog's limit.
int tlx_tcp_backlog(int fd, uint32_t *waiting, uint32_t *most);
int tlx_unix_backlog(int netlink, uint32_t inode, uint32_t *waiting, uint32_t *most);
/// Reads the state of a receive buffer: bytes used, its size in bytes, and how many datagrams were dropped.
int tlx_receive_memory(int fd, uint32_t *used, uint32_t *most, uint32_t *dropped);

// Sockets of other processes (foreign.c).
/// Duplicates another process's descriptor, close-on-exec. Older libcs have no wrapper for pidfd_getfd.
int tlx_pidfd_getfd(int pidfd, int fd);
/// Reads the type and addresses of a socket. In C, since the code needs macros, unions and casts that Swift lacks.
enum { tlx_address_text = 112 };
enum { tlx_family_other, tlx_family_internet, tlx_family_unix, tlx_family_vsock };
typedef struct {
    /// The address family, one of tlx_family_….
    uint8_t family;
    /// The socket type: 0 stream, 1 datagram, 2 seqpacket, 3 other.
    uint8_t type;
    uint8_t listens, is_connected;
    /// Whether the socket belongs to another network namespace than this process; 0 if the kernel does not say
    /// (before Linux 5.14).
    uint8_t is_elsewhere;
    /// A key for the address that the socket is bound to: its port, or a number derived from its name; 0 if unbound.
    /// A listening socket and the connections it accepted have the same key.
    uint64_t place;
    /// The socket's own address and the peer's, for display; empty if it has none.
    char local[tlx_address_text], remote[tlx_address_text];
} tlx_socket_facts;
int tlx_socket_facts_of(int fd, tlx_socket_facts *to);
typedef struct {
    /// Bytes received but not read, and bytes written but not acknowledged.
    uint32_t unread, unsent;
    /// Milliseconds since data last moved; UINT32_MAX if the kernel does not say.
    uint32_t milliseconds;
    /// Milliseconds since data was last received; UINT32_MAX if there was none, and before Linux 4.19.
    uint32_t received;
    /// Milliseconds since data was last received, if this end has written nothing since; otherwise, and before Linux
    /// 4.19, UINT32_MAX.
    uint32_t unanswered;
    /// Milliseconds since data was last received, if this end has written within the same tick of the kernel's clock,
    /// so that the order is unknown; otherwise UINT32_MAX.
    uint32_t tied;
} tlx_socket_traffic;
int tlx_socket_traffic_of(int fd, tlx_socket_traffic *to);
/// Reads the queues of the sockets in this network namespace by socket diagnostics. As with tlx_tcp_ask and
/// tlx_tcp_answer, ask for one kind of sockets, then read the answer in parts.
typedef struct {
    uint32_t inode;
    /// For a listening socket, connections in its accept queue; for other sockets, bytes to read.
    uint32_t unread;
    uint64_t place;
    /// The state, one of tlx_tcp_…; a connected datagram socket is "established".
    uint8_t state;
    uint8_t family, type;
    /// Whether a writer would block.
    uint8_t is_full;
    /// The number by which the kernel's socket diagnostics identify a socket until the next boot; 0 for a Unix socket.
    uint64_t cookie;
    /// Set only for connections, not for listening sockets.
    tlx_socket_traffic traffic;
} tlx_socket_queue;
enum { tlx_tcp_close_wait = 8 };
enum { tlx_queue_tcp4, tlx_queue_tcp6, tlx_queue_udp4, tlx_queue_udp6, tlx_queue_unix };
enum { tlx_queue_piece = 1024 };
int tlx_queue_ask(int netlink, int kind);
ssize_t tlx_queue_answer(int netlink, int kind, tlx_socket_queue *to, int *is_last);

/// splice and tee, which need _GNU_SOURCE; they never block here. An `offset` is NULL for a pipe; otherwise it is
/// read and updated.
ssize_t tlx_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t size);
ssize_t tlx_tee(int in, int out, size_t size);
/// F_SETPIPE_SZ, F_GETPIPE_SZ and FIONREAD, which Swift's Glibc does not import.
int tlx_pipe_size(int fd);
int tlx_set_pipe_size(int fd, int size);
int tlx_readable_bytes(int fd);
/// pipe2 needs _GNU_SOURCE. Always close-on-exec; non-blocking on request.
int tlx_pipe(int fds[2], int nonblocking);

/// The W… macros for a wait status, which Swift's Glibc does not import.
int tlx_wifexited(int status);
int tlx_wexitstatus(int status);
int tlx_wifsignaled(int status);
int tlx_wtermsig(int status);
int tlx_wcoredump(int status);

/// A timerfd that becomes readable when the clock is set (timerfd_create(2); TFD_TIMER_CANCEL_ON_SET needs
/// _GNU_SOURCE). After that, it must be armed again.
int tlx_clock_watch(void);
int tlx_clock_watch_arm(int fd);
/// timerfd on CLOCK_MONOTONIC, since Swift's Glibc lacks its header. The time is absolute, in nanoseconds; 0 disarms.
int tlx_timerfd(void);
int tlx_timerfd_set(int fd, int64_t nanoseconds);
/// eventfd, since Swift's Glibc lacks its header; non-blocking.
int tlx_eventfd(void);

/// epoll, since Swift's Glibc lacks its header, and struct epoll_event is packed.
typedef struct {
    uint32_t events;
    uint64_t data;
} tlx_epoll_event;
int tlx_epoll_create(void);
/// The operation: 1 add, 2 delete, 3 modify.
int tlx_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t data);
int tlx_epoll_wait(int epoll, tlx_epoll_event *events, int capacity, int timeout_ms);
extern const uint32_t tlx_epollin, tlx_epollout, tlx_epollhup, tlx_epollrdhup, tlx_epollerr, tlx_epollet, tlx_epollpri;

/// ioprio_get and ioprio_set, which have no wrapper in libc. `thread` is a thread's id.
int tlx_io_priority(int thread);
int tlx_set_io_priority(int thread, int priority);
/// getxattr, which Swift's Glibc lacks. Reads at most `size` bytes and returns the length, or -1.
long tlx_attribute(const char *path, const char *name, void *value, unsigned long size);
/// listxattr and setxattr, which Swift's Glibc lacks. The first returns the length of all names, each with a NUL, or -1.
long tlx_attribute_names(const char *path, char *names, unsigned long size);
int tlx_set_attribute(const char *path, const char *name, const void *value, unsigned long size);
/// syncfs(2), which needs _GNU_SOURCE.
int tlx_synchronise_filesystem(int fd);
/// flock(2), which Swift hides behind the struct of that name. Kind: 0 unlock, 1 shared, 2 exclusive. Never blocks.
int tlx_flock(int fd, int kind);
/// prctl, which is variadic, so that Swift cannot call it.
int tlx_prctl(int option, unsigned long argument);
/// Blocks or unblocks one signal in this thread. In C, since the functions for sigset_t are inline functions with
/// statement expressions.
int tlx_signal_block(int signo, int block);
/// Sets a signal's action to SIG_DFL (0) or SIG_IGN (1). Swift cannot set the handler in struct sigaction, an
/// anonymous union.
int tlx_signal_disposition(int signo, int ignore);
/// Makes each arrival of a signal add 1 to an eventfd. In C, since a signal handler must be async-signal-safe. All
/// signals share one eventfd.
int tlx_signal_count(int signo, int eventfd);
/// SIGRTMIN and SIGRTMAX, which are macros that call functions.
int tlx_sigrtmin(void);
int tlx_sigrtmax(void);
/// major and minor of a device number, which are macros that Swift cannot import.
unsigned int tlx_major(uint64_t device);
unsigned int tlx_minor(uint64_t device);
/// getrlimit and setrlimit, whose `resource` is an enum in Swift's Glibc.
int tlx_get_limit(int resource, uint64_t *soft, uint64_t *hard);
int tlx_set_limit(int resource, uint64_t soft, uint64_t hard);
/// Whether two descriptors refer to the same open file description, by kcmp, which has no wrapper in libc: 1, 0, or
/// -1.
int tlx_same_file(int one, int other);
/// Stores a value with release ordering: a process that reads it after this process has died also sees all earlier
/// writes.
void tlx_store_release(uint32_t *to, uint32_t value);
/// Whether a descriptor is on a FUSE filesystem, whose server may report any owner for a file: 1, 0, or -1.
int tlx_is_made_up(int fd);
/// Whether a path is on tmpfs or ramfs: 1, 0, or -1 (Swift's statfs is ambiguous: a function and a struct).
int tlx_is_memory(const char *path);
/// sync_file_range needs _GNU_SOURCE. Starts writeback of a range of a file without waiting for it.
void tlx_begin_writing(int fd, off_t offset, off_t count);
/// memrchr needs _GNU_SOURCE.
const void *tlx_memrchr(const void *bytes, int byte, size_t count);
/// Calls mallopt, which Swift's Glibc lacks. All threads share one heap, and large blocks are always mapped
/// separately: both settings help to return freed memory to the kernel.
void tlx_heap_settings(void);
/// Makes the heap keep up to 4 MiB of freed memory (1), or reverts that (0).
void tlx_heap_keep(int keeps);
/// Returns free heap pages to the kernel, and drops unmodified file pages of the program and its libraries
/// (dl_iterate_phdr needs _GNU_SOURCE). Dropped pages are read from the page cache when they are used again. No other
/// thread may run during the call.
void tlx_release_pages(void);
/// mlockall, whose flags are an enum in Swift's Glibc, with MCL_ONFAULT, which needs _GNU_SOURCE. Locks all present
/// pages, and later pages once they are touched. Fails with EPERM if the process may not lock memory without a limit:
/// mappings beyond a limit would fail.
int tlx_lock_memory(void);
int tlx_unlock_memory(void);
/// Touches `size` bytes of free heap. In C, since Swift's compiler might optimise such a loop away.
void tlx_touch_heap(size_t size);
/// sched_getcpu needs _GNU_SOURCE.
int tlx_processor(void);
/// sched_setaffinity with a single processor. In C, since Swift cannot import the macros for cpu_set_t.
int tlx_bind(pid_t pid, int processor);
/// Turns all of a file's content into zeros that take no memory; its size stays. fallocate's flags need _GNU_SOURCE.
int tlx_punch(int fd);
/// renameat2 with RENAME_NOREPLACE, which needs _GNU_SOURCE: fails with EEXIST if the target exists.
int tlx_rename_exclusive(const char *from, const char *to);
/// renameat2 with RENAME_EXCHANGE: exchanges two names atomically.
int tlx_rename_exchange(const char *one, const char *other);
/// openat2, which has no wrapper in libc. Opens a name in a folder, but no symlink and, with `same_device`, no mount
/// point, since a mounted filesystem could block. Before Linux 5.6, or if openat2 is forbidden, mount points are
/// opened too.
int tlx_open_beneath(int folder, const char *name, int flags, int same_device);
/// The ioctls of fs-verity, which are variadic. The first makes a file that is open for reading immutable, with
/// SHA-256 over blocks of 4 KiB. The second writes the file's digest of 32 bytes. They fail with ENOTTY or EOPNOTSUPP
/// if the filesystem does not support fs-verity. The second fails with ENODATA for a file without fs-verity, or with
/// another kind of digest.
int tlx_verity_enable(int fd);
int tlx_verity_digest(int fd, uint8_t *digest);
/// The ioctls of fscrypt, which are variadic. The first one writes the 16 bytes that identify the key of an encrypted
/// folder. It fails with ENODATA if the folder is not encrypted but could be, and with EOPNOTSUPP or ENOTTY if the
/// filesystem does not support encryption. The second one encrypts an empty folder. `fd` is a folder.
int tlx_fscrypt_policy(int fd, uint8_t *identifier);
int tlx_fscrypt_protect(int fd, const uint8_t *identifier);
/// The first one gives the kernel a key of 64 bytes, and writes the key's identifier. The second one removes a key; it
/// returns flags (1: files are still in use, 2: other users have also added the key) or -1. The third one asks for a
/// key's state: 1 absent, 2 present, 3 removed but still in use, or -1.
int tlx_fscrypt_add(int fd, const uint8_t *key, uint8_t *identifier);
int tlx_fscrypt_remove(int fd, const uint8_t *identifier, int of_all_users);
int tlx_fscrypt_status(int fd, const uint8_t *identifier);
/// Reads the device and the inode of a file. Uses only what the kernel has cached, so it waits for no server (statx
/// with AT_STATX_DONT_SYNC).
int tlx_identity(int folder, const char *name, uint64_t *device, uint64_t *inode);
/// kcmp(2), which has no wrapper in libc. Compares a table of two threads: 2 descriptors, 3 working directory and root.
/// Returns 0 if they share the table, a positive number if not, or -1.
int tlx_compare_tasks(int first, int second, int kind);
/// The number of a filesystem's type (statfs(2), f_type), or -1.
long tlx_filesystem(const char *path);
/// Opens a socket on which the kernel sends its audit records about Landlock and no others. Needs CAP_AUDIT_READ.
int tlx_audit_listen(void);
/// Reads the next record from that socket: its text, and its type, which is 0 if the sender was not the kernel. Returns
/// the length of the text in bytes, or -1 with EAGAIN if no record waits, or ENOBUFS if records were lost.
ssize_t tlx_audit_next(int fd, uint16_t *type, char *text, size_t size);
/// Whether audit is enabled on this machine: 1 or 0, or -1 after an error. Waits at most `patience` milliseconds for
/// the kernel. Needs CAP_AUDIT_CONTROL.
int tlx_audit_enabled(int patience);
/// The version of the kernel's Landlock ABI. Landlock has no wrapper in libc.
long tlx_landlock_version(void);
/// Creates a Landlock ruleset that restricts these rights. Returns its descriptor.
int tlx_landlock_ruleset(uint64_t files, uint64_t network, uint64_t scoped);
/// Adds a rule to a Landlock ruleset that allows rights on an open file or folder, or on a TCP port.
int tlx_landlock_allow(int ruleset, int fd, uint64_t rights);
int tlx_landlock_allow_port(int ruleset, uint16_t port, uint64_t rights);
/// Restricts this process by Landlock. `paths` has three parts: below the first `writable` paths, it may only read;
/// below the paths up to `executable`, it has all access except to special files and programs; below the rest, it may
/// read and execute. Missing paths are skipped. Returns 1 if the process is restricted, 0 if the kernel has no
/// Landlock.
int tlx_confine(const char *const *paths, size_t count, size_t writable, size_t executable, int abstract);
/// Rename without replacing (renameat2 needs _GNU_SOURCE). Fails with EEXIST if the target exists. On filesystems
/// without support for that, it uses link and unlink.
int tlx_rename_absent(int from_folder, const char *from, int to_folder, const char *to);

/// wcwidth(3), which needs _XOPEN_SOURCE. Always uses the locale C.UTF-8 instead of the process's own. Returns -1 for
/// characters that are not printable.
int tlx_columns(uint32_t scalar);
/// Adopts the environment's locale for character types; returns 1 if it is UTF-8. nl_langinfo's CODESET is an enum in
/// Swift's Glibc.
int tlx_adopt_locale(void);
/// The size of a terminal, by ioctl, which is variadic. Fails with ENOTTY if the size is unknown.
int tlx_terminal_size(int fd, int *rows, int *columns);
/// Turns a terminal's echo and its signals off, or on again.
int tlx_set_echo(int fd, int on);
/// signalfd, which Swift's Glibc lacks. The first function blocks SIGTERM and the signals that a terminal sends, and
/// returns a descriptor for them. The second reads one signal: it returns the signal's number, 0 after an incomplete
/// read, or fails with EAGAIN.
int tlx_terminal_signals(void);
int tlx_next_signal(int fd);
/// Performs a signal's default action on this process, even if the signal is blocked. In C, since the handler in
/// struct sigaction is a union.
void tlx_take_signal(int signo);

#endif

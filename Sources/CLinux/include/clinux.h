/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CLINUX_H
#define TORPOR_CLINUX_H

// What Swift's `import Glibc` does not show, or shows in a form that Swift cannot call. One reason per shim.
// Bodies are in clinux.c: _GNU_SOURCE must not leak into the module. All return -1 and set errno as libc does.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/// The sender of a message or the other side of a connection (struct ucred needs _GNU_SOURCE).
typedef struct {
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
} tlx_credentials;

/// No pidfd_open in Swift's Glibc. The descriptor is close-on-exec.
int tlx_pidfd_open(pid_t pid, unsigned int flags);
/// No pidfd_send_signal in Swift's Glibc.
int tlx_pidfd_send_signal(int pidfd, int signo);
/// PIDFD_SIGNAL_PROCESS_GROUP has no name in older headers.
int tlx_pidfd_kill_group(int pidfd);
/// What a place for a process number has room for, with its NUL.
#define TLX_PID_ROOM 12
/// Starts a program that finds its own number in its environment: at these places in it, each with TLX_PID_ROOM bytes; the
/// last is NULL. Returns the child, or -1.
pid_t tlx_spawn_with_own_pid(const char *path, char *const arguments[], char *const environment[], char *const places[]);
/// close_range needs _GNU_SOURCE.
int tlx_close_range(unsigned int first, unsigned int last, int flags);
/// memfd_create needs _GNU_SOURCE; always close-on-exec, sealing allowed.
int tlx_memfd_create(const char *name);
/// Fixes the size of a memfd and forbids new ways to write to it (F_ADD_SEALS and the seals need _GNU_SOURCE).
int tlx_memfd_seal(int fd);
/// process_madvise and process_mrelease have no wrapper in older libcs.
ssize_t tlx_process_madvise(int pidfd, const struct iovec *ranges, size_t count, int advice);
int tlx_process_mrelease(int pidfd);
/// MADV_COLD and MADV_PAGEOUT are not imported.
extern const int tlx_madv_cold, tlx_madv_pageout;

/// recvmsg with control messages: the CMSG macros cannot be imported. Never blocks (MSG_DONTWAIT), descriptors are
/// close-on-exec; takes up to *fd_count descriptors, writes how many came (a surplus is closed); credentials->pid is 0
/// where none came; *truncated bit 0 says that data, bit 1 that control data was cut.
ssize_t tlx_receive(int fd, void *buffer, size_t size, int *fds, size_t *fd_count, tlx_credentials *credentials,
                    int *truncated, int peek);
/// Takes the next datagram away, whatever it has; its descriptors are closed.
int tlx_drop(int fd);
/// Has this thread interrupted by SIGALRM every 5 ms, from 1 to 0; where there is no timer to be had nothing happens.
void tlx_promptly(int begins);
/// sendmsg with descriptors (at most 253), as above; MSG_NOSIGNAL; never blocks where `wait` is 0.
ssize_t tlx_send(int fd, const void *buffer, size_t size, const int *fds, size_t fd_count, int wait);
/// SO_PEERCRED takes a struct ucred.
int tlx_peer_credentials(int fd, tlx_credentials *credentials);
/// SO_PEERGROUPS: the groups of the peer; returns how many there are (may be more than `capacity`: ask again).
int tlx_peer_groups(int fd, uint32_t *groups, size_t capacity);
/// struct sockaddr_un holds a tuple of 108 characters in Swift. A leading '@' means an abstract name.
int tlx_unix_bind(int fd, const char *path, size_t length);
int tlx_unix_connect(int fd, const char *path, size_t length);
/// SOCK_STREAM and its flags are an enum in Swift's Glibc. Kind: 0 stream, 1 datagram, 2 seqpacket.
/// O_PATH needs _GNU_SOURCE.
extern const int tlx_o_path;
/// openat2 has no wrapper in libc. Opens a place in the tree, a link at its end followed or not, where the kernel has the
/// whole way in memory; EAGAIN where it would have to ask a disk or a server, or to note when a link was followed.
int tlx_open_path_cached(const char *path, int follow);
int tlx_unix_socket(int kind, int non_blocking);
int tlx_unix_pair(int kind, int fds[2]);
/// accept4 needs _GNU_SOURCE.
int tlx_accept(int fd);
/// TCP: getaddrinfo-free, numeric addresses only. Non-blocking connect and listen, for readiness checks and sockets.
int tlx_tcp_connect(const char *address, uint16_t port);
int tlx_tcp_listen(const char *address, uint16_t port, int backlog, int reuse_port);
int tlx_socket_error(int fd);
int tlx_tcp_port(int fd);
/// Socket diagnostics: their messages are macros and structures of headers that Swift does not import.
/// An address, IPv4 as ::ffff:a.b.c.d, and a port, all in the order of this machine.
typedef struct {
    uint64_t high, low;
    uint16_t port;
} tlx_tcp_end;
typedef struct {
    uint32_t inode;
    /// ESTABLISHED: since data last moved; TIME_WAIT: until it is forgotten. UINT32_MAX where the kernel does not say.
    uint32_t milliseconds;
    tlx_tcp_end local, remote;
    /// One of tlx_tcp_….
    uint8_t state;
    /// LISTEN on IPv6: takes no IPv4 connections.
    uint8_t is_v6_only;
} tlx_tcp_socket;
enum { tlx_tcp_established = 1, tlx_tcp_time_wait = 6, tlx_tcp_listening = 10 };
int tlx_diagnostics_socket(void);
/// A netlink socket that becomes readable when a route of this network namespace is added or removed.
int tlx_route_socket(void);
/// Reads what is there; 1 if there is a way to other machines that was not there, 0 if not.
int tlx_route_news(int fd);
/// Asks for the TCP sockets of this network namespace by IP version, 4 or 6, that are in one of the states, a set of
/// 1 << tlx_tcp_…; then takes the answer piece by piece: how many were written to `to`, which has room for
/// tlx_tcp_piece, and whether that was all.
int tlx_tcp_ask(int netlink, int version, uint32_t states);
ssize_t tlx_tcp_answer(int netlink, tlx_tcp_socket *to, int *is_last);
enum { tlx_tcp_piece = 512 };

/// Who has the other side of a TCP connection open: 1 and the user that accepted it, 0 where that is another machine. ENOENT
/// where it is this machine, and nobody has accepted the connection (any more) or the kernel does not say.
int tlx_tcp_peer_user(int fd, uint32_t *user);

// Sockets that apps are given (listening.c).
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
    const char *interface;  // of a link-local address
    uint32_t port;
    uint32_t cid;
    int ipv6_only;  // -1: as the machine has it
    int reuse_port;
    int free_bind;
    int transparent;
    const char *device;
} tlx_bind_plan;
/// Swift sees no sockaddr_vm, and setsockopt's names only in part. `stage`: what failed.
int tlx_bound_socket(const tlx_bind_plan *plan, int *stage);
/// A copy of another process's descriptor (pidfd_getfd), if it is a socket that is bound there; else ENOENT. For Unix
/// sockets `address` is the path, or @ and the name.
int tlx_copy_bound(int pidfd, int fd, const tlx_bind_plan *plan);
int tlx_set_socket_option(int fd, int option, int value);
/// The mode that the node of a Unix socket has from its bind on, less the umask.
int tlx_socket_inode_mode(int fd, unsigned int mode);
/// Of what is open as a place only too (fchown(2) refuses that); ~0 leaves one as it is.
int tlx_set_owner(int fd, uint32_t user, uint32_t group);
/// With whose rights this thread meets files from now on (setfsuid(2)), with these supplementary groups; and as before.
/// −1 where that cannot be had (EPERM): then all is as before.
int tlx_act_as(uint32_t user, uint32_t group, const uint32_t *groups, size_t count);
void tlx_act_as_before(void);
/// In between: with the rights that this thread had before, and back. Nothing where it acts as nobody else.
void tlx_act_as_oneself(int on);
/// A filter through which nothing passes (SO_ATTACH_FILTER), or none.
int tlx_hold_back(int fd, int on);
/// How many connections wait to be accepted, and how many may.
int tlx_tcp_backlog(int fd, uint32_t *waiting, uint32_t *most);
int tlx_unix_backlog(int netlink, uint32_t inode, uint32_t *waiting, uint32_t *most);
/// Bytes of the receive buffer that are used, and that it has; how many datagrams were dropped.
int tlx_receive_memory(int fd, uint32_t *used, uint32_t *most, uint32_t *dropped);

// Sockets of other processes (foreign.c).
/// pidfd_getfd has no wrapper in older libcs. A copy of another process's descriptor, close-on-exec.
int tlx_pidfd_getfd(int pidfd, int fd);
/// What a socket is: its options and addresses are macros, unions and casts that Swift cannot write.
enum { tlx_address_text = 112 };
enum { tlx_family_other, tlx_family_internet, tlx_family_unix, tlx_family_vsock };
typedef struct {
    /// One of tlx_family_….
    uint8_t family;
    /// 0 stream, 1 datagram, 2 seqpacket, 3 another.
    uint8_t type;
    uint8_t listens, is_connected;
    /// Where it is bound, equal for a socket that listens and the connections that came in there: a port, or a number
    /// made from a name; 0 for none.
    uint64_t place;
    /// Its address and its peer's, for people; empty for none.
    char local[tlx_address_text], remote[tlx_address_text];
} tlx_socket_facts;
int tlx_socket_facts_of(int fd, tlx_socket_facts *to);
typedef struct {
    /// Bytes that came and were not read, and that were written and have not arrived.
    uint32_t unread, unsent;
    /// Since data last moved; UINT32_MAX where the kernel does not say.
    uint32_t milliseconds;
    /// Since data last came, where nothing was written since then; else, and before Linux 4.19, UINT32_MAX.
    uint32_t unanswered;
    /// The same where something was written within the same tick of the kernel's clock as data last came, before it or
    /// after it.
    uint32_t tied;
} tlx_socket_traffic;
int tlx_socket_traffic_of(int fd, tlx_socket_traffic *to);
/// What waits at sockets of this network namespace, by socket diagnostics: asks for one kind, then takes the answer piece by
/// piece as tlx_tcp_answer does.
typedef struct {
    uint32_t inode;
    /// Connections in the backlog of one that listens, else bytes.
    uint32_t unread;
    uint64_t place;
    /// One of tlx_tcp_…; of datagrams, established where it is connected.
    uint8_t state;
    uint8_t family, type;
    /// Whether a writer has to wait for room.
    uint8_t is_full;
    /// Of connections.
    tlx_socket_traffic traffic;
} tlx_socket_queue;
enum { tlx_tcp_close_wait = 8 };
enum { tlx_queue_tcp4, tlx_queue_tcp6, tlx_queue_udp4, tlx_queue_udp6, tlx_queue_unix };
enum { tlx_queue_piece = 1024 };
int tlx_queue_ask(int netlink, int kind);
ssize_t tlx_queue_answer(int netlink, int kind, tlx_socket_queue *to, int *is_last);

/// splice and tee need _GNU_SOURCE; never block. `offset` is NULL for pipes, else in and out.
ssize_t tlx_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t size);
ssize_t tlx_tee(int in, int out, size_t size);
/// F_SETPIPE_SZ, F_GETPIPE_SZ and FIONREAD are not imported.
int tlx_pipe_size(int fd);
int tlx_set_pipe_size(int fd, int size);
int tlx_readable_bytes(int fd);
/// pipe2 needs _GNU_SOURCE; close-on-exec, non-blocking where asked.
int tlx_pipe(int fds[2], int nonblocking);

/// The W macros of wait status are not imported.
int tlx_wifexited(int status);
int tlx_wexitstatus(int status);
int tlx_wifsignaled(int status);
int tlx_wtermsig(int status);
int tlx_wcoredump(int status);

/// A descriptor that becomes readable when somebody sets the clock (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET needs
/// _GNU_SOURCE); armed anew after that.
int tlx_clock_watch(void);
int tlx_clock_watch_arm(int fd);
/// timerfd on CLOCK_MONOTONIC: its header is not in Swift's Glibc. An absolute time in ns; 0 disarms.
int tlx_timerfd(void);
int tlx_timerfd_set(int fd, int64_t nanoseconds);
/// eventfd: as above; non-blocking.
int tlx_eventfd(void);

/// epoll: its header is not in Swift's Glibc, and struct epoll_event is packed.
typedef struct {
    uint32_t events;
    uint64_t data;
} tlx_epoll_event;
int tlx_epoll_create(void);
/// Operation: 1 add, 2 delete, 3 modify.
int tlx_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t data);
int tlx_epoll_wait(int epoll, tlx_epoll_event *events, int capacity, int timeout_ms);
extern const uint32_t tlx_epollin, tlx_epollout, tlx_epollhup, tlx_epollrdhup, tlx_epollerr, tlx_epollet, tlx_epollpri;

/// ioprio_get and ioprio_set have no wrapper in libc: of one thread by its number.
int tlx_io_priority(int thread);
int tlx_set_io_priority(int thread, int priority);
/// Extended attributes are not in Swift's Glibc. The bytes of one, at most `size`; -1 with errno.
long tlx_attribute(const char *path, const char *name, void *value, unsigned long size);
/// The function flock is hidden behind the struct of that name. Kind: 0 unlock, 1 shared, 2 exclusive; never blocks.
int tlx_flock(int fd, int kind);
/// prctl is variadic.
int tlx_prctl(int option, unsigned long argument);
/// Blocks or unblocks one signal in this thread (sigset_t helpers are inline functions with statement expressions).
int tlx_signal_block(int signo, int block);
/// sigaction's handler is an anonymous union: sets SIG_DFL (0) or SIG_IGN (1).
int tlx_signal_disposition(int signo, int ignore);
/// Adds 1 to an eventfd whenever the signal comes: what a handler may do is for C to keep to. One eventfd for all signals.
int tlx_signal_count(int signo, int eventfd);
/// SIGRTMIN and SIGRTMAX are function calls behind macros.
int tlx_sigrtmin(void);
int tlx_sigrtmax(void);
/// major and minor of a device number are macros.
unsigned int tlx_major(uint64_t device);
unsigned int tlx_minor(uint64_t device);
/// struct rlimit's resource is an enum in Swift's Glibc.
int tlx_get_limit(int resource, uint64_t *soft, uint64_t *hard);
int tlx_set_limit(int resource, uint64_t soft, uint64_t hard);
/// Whether two descriptors are one open file (kcmp has no wrapper): 1, 0, or -1.
int tlx_same_file(int one, int other);
/// A store that comes after all stores before it: for records that another process reads after this one's death.
void tlx_store_release(uint32_t *to, uint32_t value);
/// Whether what is open is on a file system whose maker says whose a file is (FUSE): 1, 0, or -1.
int tlx_is_made_up(int fd);
/// Whether a path is on a tmpfs or ramfs: statfs is a function and a struct. 1, 0, or -1.
int tlx_is_memory(const char *path);
/// sync_file_range needs _GNU_SOURCE: begins to write so many bytes to the disk, and waits for nothing.
void tlx_begin_writing(int fd, off_t offset, off_t count);
/// memrchr needs _GNU_SOURCE.
const void *tlx_memrchr(const void *bytes, int byte, size_t count);
/// mallopt and malloc_trim are not in Swift's Glibc: one heap for all threads, large pieces always mapped for themselves,
/// so that memory goes back to the kernel when it is freed.
void tlx_heap_settings(void);
/// Has the heap keep up to 4 MiB of what was freed (1), or as tlx_heap_settings says (0).
void tlx_heap_keep(int keeps);
/// Gives back the free pages of the heap, and lets go of the program's and its libraries' pages that are as on disk
/// (dl_iterate_phdr needs _GNU_SOURCE): what is used again is mapped again from the page cache. No other thread may run
/// code of the program meanwhile.
void tlx_release_pages(void);
/// mlockall's flags are an enum in Swift's Glibc, and MCL_ONFAULT needs _GNU_SOURCE. Keeps what the process has in memory,
/// and what it will have once it was touched, from being paged out; -1 and EPERM where the process may not do so without
/// bounds: mappings beyond a bound would be refused.
int tlx_lock_memory(void);
int tlx_unlock_memory(void);
/// Has so many free bytes of the heap in memory: a compiler may leave out what Swift would do for it.
void tlx_touch_heap(size_t size);
/// sched_getcpu needs _GNU_SOURCE.
int tlx_processor(void);
/// sched_setaffinity with one processor: cpu_set_t and its macros cannot be imported.
int tlx_bind(pid_t pid, int processor);
/// fallocate's flags need _GNU_SOURCE. All of a file's content becomes zeros that take no memory; its size stays.
int tlx_punch(int fd);
/// Rename without replacement (renameat2 needs _GNU_SOURCE).
int tlx_rename_exclusive(const char *from, const char *to);
/// openat2 has no wrapper in libc. Opens one name in a folder: no link, and (`same_device`) nothing that is mounted there,
/// which could wait for whoever made it. Before Linux 5.6 and where it is forbidden, links alone are kept out.
int tlx_open_beneath(int folder, const char *name, int flags, int same_device);
/// Landlock has no wrapper in libc. The version of its interface, or -1 and errno.
long tlx_landlock_version(void);
/// Confines this process to reading below the first paths, and to all but special files
/// below those from `writable` on; what is not there is left out. 1 where it is, 0 where the kernel has no Landlock, -1 and
/// errno otherwise.
int tlx_confine(const char *const *paths, size_t count, size_t writable);
/// renameat2 needs _GNU_SOURCE. EEXIST when there is something already; where the filesystem cannot do that, by a second name.
int tlx_rename_absent(int from_folder, const char *from, int to_folder, const char *to);

/// wcwidth(3) needs _XOPEN_SOURCE and goes by the process's locale: this goes by C.UTF-8's. -1: it cannot be shown.
int tlx_columns(uint32_t scalar);
/// nl_langinfo's CODESET is an enum in Swift's Glibc. Takes the locale of the environment for characters; whether it is
/// one of UTF-8.
int tlx_adopt_locale(void);
/// ioctl is variadic. -1 and ENOTTY where the terminal does not know its size.
int tlx_terminal_size(int fd, int *rows, int *columns);
/// signalfd is not imported. The signals that a terminal sends, and SIGTERM, are blocked from here on, and read by the
/// next: a number, 0 or -1 and EAGAIN.
int tlx_terminal_signals(void);
int tlx_next_signal(int fd);
/// struct sigaction's handler is a union in Swift's Glibc. Does with this process what the signal does to one that does
/// not know it, although it is blocked.
void tlx_take_signal(int signo);

#endif

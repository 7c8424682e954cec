/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes by way of the kernel: sockets, namespaces, rights, and calls that have had many flaws.
 * Those of `nul_*` pass arguments that are wrong for the kernel: with them any answer but those of
 * the filter (EACCES, ENOSYS) counts as gone through. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "escape.h"

static long reached(long r)
{
    return r >= 0 || (errno != EACCES && errno != ENOSYS) ? 0 : -1;
}

static long socket_inet(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}
static long socket_inet6(void)
{
    return socket(AF_INET6, SOCK_DGRAM, 0);
}
static long socket_unix(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}
static long socket_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 0);
}
static long socket_packet(void)
{
    return reached(socket(AF_PACKET, SOCK_RAW, 0));
}
static long socket_pair(void)
{
    int two[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, two);
}
static long socket_connect(void)
{
    return reached(connect(0, NULL, 0));
}
static long io_uring(void)
{
    uint32_t params[30] = {0};
    return reached(syscall(425, 4, params));
}
static long bpf(void)
{
    return reached(syscall(SYS_bpf, 0, NULL, 0));
}
static long keyctl(void)
{
    return reached(syscall(SYS_keyctl, 0, -3, 1));
}
static long add_key(void)
{
    return reached(syscall(SYS_add_key, "user", "x", "y", 1, -2));
}
static long userfaultfd(void)
{
    return reached(syscall(SYS_userfaultfd, 1));
}
static long do_mount(void)
{
    return reached(mount(NULL, "/nonexistent", NULL, MS_REMOUNT, NULL));
}
static long do_umount(void)
{
    return reached(umount2("/nonexistent", 0));
}
static long do_chroot(void)
{
    return reached(chroot("/nonexistent"));
}
static long do_pivot(void)
{
    return reached(syscall(SYS_pivot_root, "/nonexistent", "/nonexistent"));
}
static long unshare_user(void)
{
    return reached(unshare(CLONE_NEWUSER));
}
static long unshare_net(void)
{
    return reached(unshare(CLONE_NEWNET));
}
static long enter_namespace(void)
{
    return reached(setns(0, 0));
}
static long perf_event(void)
{
    return reached(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
}
static long kernel_module(void)
{
    return reached(syscall(SYS_finit_module, -1, "", 0));
}
static long kernel_log(void)
{
    return reached(syscall(SYS_syslog, 99, NULL, 0));
}
static long set_user(void)
{
    return reached(setuid(getuid()));
}
static long set_groups(void)
{
    return reached(syscall(SYS_setgroups, 0, NULL));
}
static long set_capabilities(void)
{
    return reached(syscall(SYS_capset, NULL, NULL));
}
static long set_personality(void)
{
    return reached(syscall(SYS_personality, 0xffffffff));
}
static long set_dumpable(void)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}
static long outlive_parent(void)
{
    return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
}
static long leave_group(void)
{
    return reached(setpgid(0, escape_parent));
}
static long leave_session(void)
{
    return reached(setsid());
}
static long move_heap(void)
{
    return reached(prctl(PR_SET_MM, 0, 0, 0, 0));
}
static long shared_memory(void)
{
    return reached(syscall(SYS_shmget, 0, 4096, 01600));
}
static long message_queue(void)
{
    return reached(syscall(SYS_msgget, 0, 01600));
}
static long posix_queue(void)
{
    return reached(syscall(SYS_mq_open, "x", O_CREAT | O_RDWR, 0600, 0));
}
static long file_watch(void)
{
    return reached(syscall(SYS_inotify_init1, 0));
}
static long file_handle(void)
{
    return reached(syscall(SYS_open_by_handle_at, -1, NULL, 0));
}
static long send_terminal(void)
{
    return reached(ioctl(0, TIOCSTI, "x"));
}
static long file_flags(void)
{
    return reached(ioctl(0, 0x40086602 /* FS_IOC_SETFLAGS */, NULL));
}
static long splice_pages(void)
{
    return reached(syscall(SYS_vmsplice, 1, NULL, 0, 0));
}
static long other_filter(void)
{
    return reached(syscall(SYS_seccomp, 0, 0, NULL));
}
static long landlock(void)
{
    return reached(syscall(444, NULL, 0, 1));
}
static long old_calls(void) /* of a 32-bit program */
{
#ifdef __x86_64__
    long r = 20; /* getpid */
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return r;
#else
    return -1;
#endif
}
static long x32_calls(void)
{
    return syscall(0x40000000 | SYS_getpid);
}
static long map_vdso(void)
{
#ifdef __x86_64__
    return reached(syscall(SYS_arch_prctl, 0x2003 /* ARCH_MAP_VDSO_64 */, (uintptr_t)0x10 << 32));
#else
    return -1;
#endif
}

const Escape escapes_of_kernel[] = {
    {"socket_inet", socket_inet},
    {"socket_inet6", socket_inet6},
    {"socket_unix", socket_unix},
    {"socket_netlink", socket_netlink},
    {"socket_packet", socket_packet},
    {"socket_pair", socket_pair},
    {"socket_connect", socket_connect},
    {"io_uring", io_uring},
    {"bpf", bpf},
    {"keyctl", keyctl},
    {"add_key", add_key},
    {"userfaultfd", userfaultfd},
    {"mount", do_mount},
    {"umount", do_umount},
    {"chroot", do_chroot},
    {"pivot_root", do_pivot},
    {"unshare_user", unshare_user},
    {"unshare_net", unshare_net},
    {"setns", enter_namespace},
    {"perf_event", perf_event},
    {"kernel_module", kernel_module},
    {"kernel_log", kernel_log},
    {"set_user", set_user},
    {"set_groups", set_groups},
    {"set_capabilities", set_capabilities},
    {"set_personality", set_personality},
    {"set_dumpable", set_dumpable},
    {"outlive_parent", outlive_parent},
    {"leave_group", leave_group},
    {"leave_session", leave_session},
    {"move_heap", move_heap},
    {"shared_memory", shared_memory},
    {"message_queue", message_queue},
    {"posix_queue", posix_queue},
    {"file_watch", file_watch},
    {"file_handle", file_handle},
    {"send_terminal", send_terminal},
    {"file_flags", file_flags},
    {"splice_pages", splice_pages},
    {"other_filter", other_filter},
    {"landlock", landlock},
    {"old_calls", old_calls},
    {"x32_calls", x32_calls},
    {"map_vdso", map_vdso},
    {NULL, NULL},
};

// SPDX-License-Identifier: MIT
// Sockets: which address, how much, what came of it. Waits for descriptors to become ready are in net_waits.cc. Also
// the library's start.
#include <netdb.h>
#include <sys/socket.h>

#include "interpose/address.h"
#include "interpose/call.h"

// _FORTIFY_SOURCE calls these.
extern "C" {
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
}

namespace {

using karst::interpose::Address;
using karst::interpose::copy_in;
using karst::interpose::in_told_zone;
using karst::interpose::Text;
using karst::interpose::told;
using karst::interpose::Values;

KARST_ZONE_KIND(socket, "socket", "family:e4{UNIX=1;IPv4=2;IPv6=10;NETLINK=16},type:x,protocol:i4|:r8")
KARST_ZONE_KIND(socketpair, "socketpair", "|:r8,read:i4,write:i4")
KARST_ZONE_KIND(connect, "connect", "fd:i4,address:s|:r8")
KARST_ZONE_KIND(accept, "accept", "fd:i4|:r8,peer:s")
KARST_ZONE_KIND(bind, "bind", "fd:i4,address:s|:r8")
KARST_ZONE_KIND(listen, "listen", "fd:i4,backlog:i4|:r8")
KARST_ZONE_KIND(shutdown, "shutdown", "fd:i4,how:e4{RD=0;WR=1;RDWR=2}|:r8")
KARST_ZONE_KIND(send, "send", "fd:i4,size:u8,flags:x|:r8")
KARST_ZONE_KIND(sendto, "sendto", "fd:i4,size:u8,flags:x,receiver:s|:r8")
KARST_ZONE_KIND(sendmsg, "sendmsg", "fd:i4,flags:x|:r8")
KARST_ZONE_KIND(sendmmsg, "sendmmsg", "fd:i4,messages:u4,flags:x|:r8")
KARST_ZONE_KIND(recv, "recv", "fd:i4,size:u8,flags:x|:r8")
KARST_ZONE_KIND(recvfrom, "recvfrom", "fd:i4,size:u8,flags:x|:r8,sender:s")
KARST_ZONE_KIND(recvmsg, "recvmsg", "fd:i4,flags:x|:r8")
KARST_ZONE_KIND(recvmmsg, "recvmmsg", "fd:i4,messages:u4,flags:x|:r8")
KARST_ZONE_KIND(getaddrinfo, "getaddrinfo", "host:s,service:s|:i4")

KARST_BEFORE(socket)
KARST_BEFORE(socketpair)
KARST_BEFORE(connect)
KARST_BEFORE(accept)
KARST_BEFORE(accept4)
KARST_BEFORE(bind)
KARST_BEFORE(listen)
KARST_BEFORE(shutdown)
KARST_BEFORE(send)
KARST_BEFORE(sendto)
KARST_BEFORE(sendmsg)
KARST_BEFORE(sendmmsg)
KARST_BEFORE(recv)
KARST_BEFORE(__recv_chk)
KARST_BEFORE(recvfrom)
KARST_BEFORE(__recvfrom_chk)
KARST_BEFORE(recvmsg)
KARST_BEFORE(recvmmsg)
KARST_BEFORE(getaddrinfo)

// libkarst's own constructor comes before all others.
__attribute__((constructor)) void begin() { karst::interpose::begin_telling_files(); }

template <typename Call>
int told_accept(int fd, const sockaddr* peer, const socklen_t* size, Call call) {
  return told(g_accept_zone, KARST_GIVEN(fd), call, [&](Values& returned, long result) {
    if (result < 0 || peer == nullptr) return returned.add_null();
    Address(peer, size).add_to(returned);
  });
}

template <typename Call>
ssize_t told_receive(int fd, size_t size, int flags, const sockaddr* sender, const socklen_t* sender_size, Call call) {
  return told(g_recvfrom_zone, KARST_GIVEN(fd, size, flags), call, [&](Values& returned, long result) {
    if (result < 0 || sender == nullptr) return returned.add_null();
    Address(sender, sender_size).add_to(returned);
  });
}

}  // namespace

KARST_EXPORT int socket(int family, int type, int protocol) {
  return told(g_socket_zone, KARST_GIVEN(family, type, protocol), [&] { return g_socket(family, type, protocol); });
}
KARST_EXPORT int socketpair(int family, int type, int protocol, int ends[2]) {
  return told(
      g_socketpair_zone, [](Values&) {}, [&] { return g_socketpair(family, type, protocol, ends); },
      [&](Values& returned, long result) {
        int got[2];
        const bool known = result == 0 && copy_in(ends, got, sizeof got, false) == sizeof got;
        for (const int descriptor : got) {
          if (known)
            returned.add(descriptor);
          else
            returned.add_null();
        }
      });
}
KARST_EXPORT int connect(int fd, const sockaddr* address, socklen_t size) {
  return told(
      g_connect_zone,
      [&](Values& given) {
        given.add(fd);
        Address(address, size).add_to(given);
      },
      [&] { return g_connect(fd, address, size); });
}
KARST_EXPORT int bind(int fd, const sockaddr* address, socklen_t size) {
  return told(
      g_bind_zone,
      [&](Values& given) {
        given.add(fd);
        Address(address, size).add_to(given);
      },
      [&] { return g_bind(fd, address, size); });
}
KARST_EXPORT int accept(int fd, sockaddr* peer, socklen_t* size) {
  return told_accept(fd, peer, size, [&] { return g_accept(fd, peer, size); });
}
KARST_EXPORT int accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  return told_accept(fd, peer, size, [&] { return g_accept4(fd, peer, size, flags); });
}
KARST_EXPORT int listen(int fd, int backlog) {
  return told(g_listen_zone, KARST_GIVEN(fd, backlog), [&] { return g_listen(fd, backlog); });
}
KARST_EXPORT int shutdown(int fd, int how) {
  return told(g_shutdown_zone, KARST_GIVEN(fd, how), [&] { return g_shutdown(fd, how); });
}

KARST_EXPORT ssize_t send(int fd, const void* from, size_t size, int flags) {
  return told(g_send_zone, KARST_GIVEN(fd, size, flags), [&] { return g_send(fd, from, size, flags); });
}
KARST_EXPORT ssize_t sendto(int fd, const void* from, size_t size, int flags, const sockaddr* receiver,
                            socklen_t receiver_size) {
  return told(
      g_sendto_zone,
      [&](Values& given) {
        karst::interpose::add_all(given, fd, size, flags);
        Address(receiver, receiver_size).add_to(given);
      },
      [&] { return g_sendto(fd, from, size, flags, receiver, receiver_size); });
}
KARST_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return told(g_sendmsg_zone, KARST_GIVEN(fd, flags), [&] { return g_sendmsg(fd, message, flags); });
}
KARST_EXPORT int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return told(g_sendmmsg_zone, KARST_GIVEN(fd, count, flags), [&] { return g_sendmmsg(fd, messages, count, flags); });
}
KARST_EXPORT ssize_t recv(int fd, void* to, size_t size, int flags) {
  return told(g_recv_zone, KARST_GIVEN(fd, size, flags), [&] { return g_recv(fd, to, size, flags); });
}
KARST_EXPORT ssize_t __recv_chk(int fd, void* to, size_t size, size_t room, int flags) {
  return told(g_recv_zone, KARST_GIVEN(fd, size, flags), [&] { return g___recv_chk(fd, to, size, room, flags); });
}
KARST_EXPORT ssize_t recvfrom(int fd, void* to, size_t size, int flags, sockaddr* sender, socklen_t* sender_size) {
  return told_receive(fd, size, flags, sender, sender_size,
                      [&] { return g_recvfrom(fd, to, size, flags, sender, sender_size); });
}
KARST_EXPORT ssize_t __recvfrom_chk(int fd, void* to, size_t size, size_t room, int flags, sockaddr* sender,
                                    socklen_t* sender_size) {
  return told_receive(fd, size, flags, sender, sender_size,
                      [&] { return g___recvfrom_chk(fd, to, size, room, flags, sender, sender_size); });
}
KARST_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return told(g_recvmsg_zone, KARST_GIVEN(fd, flags), [&] { return g_recvmsg(fd, message, flags); });
}
KARST_EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  return told(g_recvmmsg_zone, KARST_GIVEN(fd, count, flags),
              [&] { return g_recvmmsg(fd, messages, count, flags, timeout); });
}

KARST_EXPORT int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  return in_told_zone(
      g_getaddrinfo_zone, KARST_GIVEN(Text{host}, Text{service}),
      [&] { return g_getaddrinfo(host, service, hints, found); },
      [](Values& returned, long result) { returned.add(static_cast<int>(result)); });
}

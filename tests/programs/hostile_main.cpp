// SPDX-License-Identifier: Apache-2.0
// Tries the one thing that its first argument names; the others are what it needs for it. Says on stdout what came of
// it. Ends with 0 if it could do it, with 1 if it was refused, with 2 if it was asked for something it does not know.
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Arguments = std::vector<std::string>;

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUnknown = 2;

/// What a call's result means.
int judge(long result) {
  if (result >= 0) {
    std::puts("done");
    return kDone;
  }
  std::printf("refused: %s\n", std::strerror(errno));
  return kRefused;
}

int number(std::string const& text) { return std::atoi(text.c_str()); }

int open_file(Arguments const& a, int flags) { return judge(::open(a[0].c_str(), flags | O_CLOEXEC, 0644)); }

/// Reads a byte, so that a file that opens but says nothing does not count.
int read_file(Arguments const& a) {
  char byte = 0;
  const int fd = ::open(a[0].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return judge(fd < 0 ? -1 : ::read(fd, &byte, 1) == 1 ? 0 : -1);
}

/// The request a[1] to the device a[0].
int request(Arguments const& a) {
  std::array<char, 4096> answer{};
  const int fd = ::open(a[0].c_str(), O_RDWR | O_CLOEXEC);
  return judge(fd < 0 ? -1 : ::ioctl(fd, std::stoul(a[1]), answer.data()));
}

int connect_to(Arguments const& a) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  a[0].copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  return judge(fd < 0 ? -1 : ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

/// At an abstract name of its network namespace, or at a path.
int listen_at(Arguments const& arguments) {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t at = arguments[0].starts_with('@') ? 1 : 0;
  arguments[0].substr(at).copy(address.sun_path + at, sizeof(address.sun_path) - 2);
  const int on = 1;
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) {
    return judge(-1);
  }
  return judge(::listen(socket, 4));
}

/// With one end of a pair instead of a socket of its own.
int send_by_pair(Arguments const& a) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  a[0].copy(address.sun_path, sizeof(address.sun_path) - 1);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()) != 0) {
    return judge(-1);
  }
  iovec data{const_cast<char*>("x"), 1};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof(address);
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  return judge(::sendmsg(ends[0], &message, 0));
}

int fork_once(Arguments const& /*a*/) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  return judge(child);
}

/// Runs the program a[0] to its end, which is to be a good one.
int start_program(Arguments const& a) {
  pid_t child = 0;
  std::string path = a[0];
  std::array<char*, 2> argv = {path.data(), nullptr};
  if (errno = ::posix_spawn(&child, path.c_str(), nullptr, nullptr, argv.data(), environ); errno != 0) {
    return judge(-1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return judge(status == 0 ? 0 : -1);
}

/// Says how many threads there are; starts no more than asked for.
int start_threads(Arguments const& a) {
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  const auto wanted = static_cast<std::size_t>(number(a[0]));
  try {
    while (threads.size() < wanted) {
      threads.emplace_back([&go] { go.wait(false); });
    }
  } catch (std::exception const& error) {
    std::printf("refused: %s\n", error.what());
  }
  std::printf("threads %zu\n", threads.size() + 1);
  const bool all = threads.size() == wanted;
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) {
    thread.join();
  }
  return all ? kDone : kRefused;
}

/// Maps and touches `a[0]` MiB in pieces.
int allocate(Arguments const& a, int flags, int protection = PROT_READ | PROT_WRITE) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  for (int i = 0; i < number(a[0]); ++i) {
    void* piece = ::mmap(nullptr, kPiece, protection, flags, -1, 0);
    if (piece == MAP_FAILED) {
      std::printf("after %d MiB ", i);
      return judge(-1);
    }
    if ((protection & PROT_WRITE) != 0) {
      std::memset(piece, 1, kPiece);
    }
  }
  return judge(0);
}

/// Maps and touches `a[0]` MiB, each of which it can only read when it maps the next one.
int allocate_and_lock(Arguments const& a) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  for (int i = 0; i < number(a[0]); ++i) {
    void* piece = ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) {
      return judge(-1);
    }
    std::memset(piece, 1, kPiece);
    ::mprotect(piece, kPiece, PROT_READ);
  }
  return judge(0);
}

/// Touches `a[0]` MiB of the memory behind the first descriptor that it is given.
int touch_shared(Arguments const& a) {
  const std::size_t bytes = static_cast<std::size_t>(number(a[0])) << 20U;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
  if (memory == MAP_FAILED) {
    return judge(-1);
  }
  std::memset(memory, 1, bytes);
  return judge(0);
}

/// Writes `a[1]` MiB to the file `a[0]`.
int write_much(Arguments const& a) {
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<char> piece(std::size_t{1} << 20U, 'x');
  const int fd = ::open(a[0].c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (int i = 0; fd >= 0 && i < number(a[1]); ++i) {
    if (::write(fd, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) {
      std::printf("after %d MiB ", i);
      return judge(-1);
    }
  }
  return judge(fd);
}

/// Several files that are each small enough.
int write_many(Arguments const& a) {
  for (int i = 0; i < number(a[1]); ++i) {
    if (const int result = write_much({a[0] + std::to_string(i), "1"}); result != kDone) {
      return result;
    }
  }
  return kDone;
}

/// `a[0]` MiB of private memory, `a[1]` of shared memory and `a[2]` in the file `a[3]`, all at once.
int use_all(Arguments const& a) {
  for (const int result :
       {allocate({a[0]}, MAP_PRIVATE | MAP_ANONYMOUS), touch_shared({a[1]}), write_much({a[3], a[2]})}) {
    if (result != kDone) {
      return result;
    }
  }
  return kDone;
}

int list_fds(Arguments const& /*a*/) {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) {
    return judge(-1);
  }
  std::vector<int> fds;
  for (dirent const* entry = ::readdir(folder); entry != nullptr; entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.' && number(entry->d_name) != ::dirfd(folder)) {
      fds.push_back(number(entry->d_name));
    }
  }
  std::sort(fds.begin(), fds.end());
  for (const int fd : fds) {
    std::printf("%d ", fd);
  }
  std::puts("");
  return kDone;
}

int read_process(Arguments const& a) {
  std::array<char, 8> bytes{};
  iovec here{bytes.data(), bytes.size()};
  iovec there{reinterpret_cast<void*>(std::strtoull(a[1].c_str(), nullptr, 0)), bytes.size()};
  const long result = ::process_vm_readv(number(a[0]), &here, 1, &there, 1, 0);
  return judge(result < 0 && errno == EFAULT ? 0 : result);  // allowed, but nothing is there
}

int trace(Arguments const& a) {
  const long result = ::ptrace(PTRACE_SEIZE, number(a[0]), nullptr, nullptr);
  return judge(result);
}

int trace_own_thread(Arguments const& /*a*/) { return judge(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }

int load_bpf(Arguments const& /*a*/) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  return judge(::syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
}

int open_perf(Arguments const& /*a*/) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  return judge(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

int setup_io_uring(Arguments const& /*a*/) {
  std::array<char, 256> parameters{};
  return judge(::syscall(SYS_io_uring_setup, 4, parameters.data()));
}

/// Types a character into a terminal of its own making.
int type_into_terminal(Arguments const& /*a*/) {
  const int terminal = ::open("/dev/ptmx", O_RDWR | O_NOCTTY);
  return judge(::ioctl(terminal < 0 ? 0 : terminal, TIOCSTI, "x"));
}

int clone_with(unsigned flags) {
  const long child = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::_exit(0);
  }
  return judge(child);
}

/// A call of i386 from a program of x86-64: 20 is getpid there.
int call_i386(Arguments const& /*a*/) {
#ifdef __x86_64__
  long result = 20;
  __asm__ __volatile__("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return judge(result > 0 ? 0 : -1);
#else
  return kRefused;
#endif
}

/// futex, memory of a descriptor, eventfd and a message with a descriptor: what an NF process lives on. 3: the memory,
/// 4: a socket on which a byte and an eventfd come.
int work(Arguments const& /*a*/) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
  if (memory == MAP_FAILED) {
    return judge(-1);
  }
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(4, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == nullptr) {
    return judge(-1);
  }
  int event = -1;
  std::memcpy(&event, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(event));
  auto* words = static_cast<std::atomic<std::uint32_t>*>(memory);
  words[0] = 1;  // waits now
  while (words[1] == 0) {
    ::syscall(SYS_futex, &words[1], /*FUTEX_WAIT*/ 0, 0, nullptr, nullptr, 0);
  }
  std::uint64_t one = 1;
  return judge(::write(event, &one, sizeof(one)) == sizeof(one) ? 0 : -1);
}

int hold(Arguments const& /*a*/) {
  std::puts("held");
  std::fflush(stdout);
  for (;;) {
    ::pause();
    ::poll(nullptr, 0, 1000);
  }
}

int write_forever(Arguments const& /*a*/) {
  for (;;) {
    std::puts("\x1b[31mnonsense");
  }
}

int show_environment(Arguments const& /*a*/) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::puts(*variable);
  }
  return kDone;
}

int tell_time(Arguments const& /*a*/) {
  const auto before = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return judge(std::chrono::steady_clock::now() > before ? 0 : -1);
}

int maps_has(Arguments const& a) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  std::array<char, 1024> line{};
  while (maps != nullptr && std::fgets(line.data(), line.size(), maps) != nullptr) {
    if (std::strstr(line.data(), a[0].c_str()) != nullptr) {
      return kDone;
    }
  }
  return kRefused;
}

int call(long number_of_call, long first = 0, long second = 0, long third = 0) {
  return judge(::syscall(number_of_call, first, second, third, 0, 0));
}

const std::map<std::string, std::function<int(Arguments const&)>> kAttempts = {
    {"nothing", [](Arguments const&) { return kDone; }},
    {"exit", [](Arguments const& a) { return number(a[0]); }},
    {"die", [](Arguments const& a) { return judge(std::raise(number(a[0]))); }},
    {"read", read_file},
    {"open-read", [](Arguments const& a) { return open_file(a, O_RDONLY); }},
    {"open-write", [](Arguments const& a) { return open_file(a, O_WRONLY); }},
    {"create", [](Arguments const& a) { return open_file(a, O_WRONLY | O_CREAT); }},
    {"request", request},
    {"mkdir", [](Arguments const& a) { return judge(::mkdir(a[0].c_str(), 0755)); }},
    {"unlink", [](Arguments const& a) { return judge(::unlink(a[0].c_str())); }},
    {"chmod", [](Arguments const& a) { return judge(::chmod(a[0].c_str(), 0777)); }},
    {"mknod", [](Arguments const& a) { return judge(::mknod(a[0].c_str(), S_IFCHR | 0600, makedev(1, 1))); }},
    {"socket", [](Arguments const& a) { return judge(::socket(number(a[0]), number(a[1]), 0)); }},
    {"connect", connect_to},
    {"listen", listen_at},
    {"send-by-pair", send_by_pair},
    {"pair",
     [](Arguments const& a) {
       std::array<int, 2> ends{};
       return judge(::socketpair(AF_UNIX, number(a[0]), 0, ends.data()));
     }},
    {"signal", [](Arguments const& a) { return judge(::kill(number(a[0]), 0)); }},
    {"ptrace", trace},
    {"traceme", trace_own_thread},
    {"process-vm-readv", read_process},
    {"fork", fork_once},
    {"start-program", start_program},
    {"vfork", [](Arguments const&) { return clone_with(CLONE_VM | CLONE_VFORK); }},
    {"clone3",
     [](Arguments const&) {
       std::array<std::uint64_t, 11> arguments{};
       arguments[4] = SIGCHLD;
       const long child = ::syscall(SYS_clone3, arguments.data(), sizeof(arguments));
       if (child == 0) {
         ::_exit(0);
       }
       return judge(child);
     }},
    {"threads", start_threads},
    {"allocate", [](Arguments const& a) { return allocate(a, MAP_PRIVATE | MAP_ANONYMOUS); }},
    {"allocate-shared", [](Arguments const& a) { return allocate(a, MAP_SHARED | MAP_ANONYMOUS); }},
    {"allocate-growing", [](Arguments const& a) { return allocate(a, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN); }},
    {"allocate-and-lock", allocate_and_lock},
    {"touch-shared", touch_shared},
    {"use-all", use_all},
    {"reserve", [](Arguments const& a) { return allocate(a, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ); }},
    {"memfd", [](Arguments const&) { return judge(::memfd_create("x", 0)); }},
    {"shmget", [](Arguments const&) { return judge(::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)); }},
    {"write-much", write_much},
    {"write-many", write_many},
    {"fds", list_fds},
    {"unshare", [](Arguments const&) { return judge(::unshare(CLONE_NEWUSER)); }},
    {"clone-user", [](Arguments const&) { return clone_with(CLONE_NEWUSER); }},
    {"setns", [](Arguments const&) { return judge(::setns(::open("/proc/self/ns/uts", O_RDONLY), CLONE_NEWUTS)); }},
    {"mount", [](Arguments const& a) { return judge(::mount("x", a[0].c_str(), "tmpfs", 0, nullptr)); }},
    {"remount", [](Arguments const& a) { return judge(::mount("", a[0].c_str(), "", MS_REMOUNT | MS_BIND, nullptr)); }},
    {"umount", [](Arguments const& a) { return judge(::umount2(a[0].c_str(), MNT_DETACH)); }},
    {"fsopen", [](Arguments const&) { return judge(::syscall(SYS_fsopen, "tmpfs", 0)); }},
    {"pivot_root", [](Arguments const& a) { return judge(::syscall(SYS_pivot_root, a[0].c_str(), a[0].c_str())); }},
    {"chroot", [](Arguments const& a) { return judge(::chroot(a[0].c_str())); }},
    {"io_uring", setup_io_uring},
    {"bpf", load_bpf},
    {"perf", open_perf},
    {"keyctl", [](Arguments const&) { return call(SYS_keyctl, /*KEYCTL_GET_KEYRING_ID*/ 0, -3, 1); }},
    {"add_key", [](Arguments const&) { return judge(::syscall(SYS_add_key, "user", "catena-test", "x", 1, -2)); }},
    {"userfaultfd", [](Arguments const&) { return call(SYS_userfaultfd, /*UFFD_USER_MODE_ONLY*/ 1); }},
    {"tiocsti", type_into_terminal},
    {"setuid", [](Arguments const& a) { return judge(::setuid(static_cast<uid_t>(number(a[0])))); }},
    {"setgroups", [](Arguments const&) { return judge(::syscall(SYS_setgroups, 0, nullptr)); }},
    {"sethostname", [](Arguments const&) { return judge(::sethostname("catena-test", 11)); }},
    {"personality", [](Arguments const&) { return call(SYS_personality, 0x0040000); }},
    {"affinity",
     [](Arguments const&) {
       // what it says does not count: it may say yes and do nothing
       cpu_set_t set;
       cpu_set_t now;
       CPU_ZERO(&set);
       CPU_SET(0, &set);
       ::sched_setaffinity(0, sizeof(set), &set);
       ::sched_getaffinity(0, sizeof(now), &now);
       errno = EPERM;
       return judge(CPU_EQUAL(&set, &now) ? 0 : -1);
     }},
    {"init_module", [](Arguments const&) { return call(SYS_init_module, 0, 0, 0); }},
    {"kexec", [](Arguments const&) { return call(SYS_kexec_load, 0, 0, 0); }},
    {"pidfd", [](Arguments const& a) { return call(SYS_pidfd_open, number(a[0])); }},
    {"kcmp", [](Arguments const& a) { return call(SYS_kcmp, ::getpid(), number(a[0])); }},
    {"dumpable", [](Arguments const&) { return judge(::prctl(PR_SET_DUMPABLE, 1)); }},
    {"i386", call_i386},
    {"dlopen", [](Arguments const& a) { return judge(::dlopen(a[0].c_str(), RTLD_NOW) == nullptr ? -1 : 0); }},
    {"maps", maps_has},
    {"work", work},
    {"hold", hold},
    {"write-forever", write_forever},
    {"environment", show_environment},
    {"clock", tell_time},
    {"whoami",
     [](Arguments const&) {
       std::printf("%u %u\n", ::getuid(), ::getgid());
       return kDone;
     }},
    {"cpu",
     [](Arguments const&) {
       cpu_set_t set;
       ::sched_getaffinity(0, sizeof(set), &set);
       std::printf("%d\n", CPU_COUNT(&set));
       return kDone;
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments all(argv + 1, argv + argc);
  const auto attempt = kAttempts.find(all.empty() ? "" : all.front());
  if (attempt == kAttempts.end()) {
    return kUnknown;
  }
  const int result = attempt->second({all.begin() + 1, all.end()});
  std::fflush(stdout);
  return result;
}

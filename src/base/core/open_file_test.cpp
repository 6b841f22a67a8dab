// SPDX-License-Identifier: Apache-2.0
#include "base/core/open_file.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace catena {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kAnn = 64'001;
constexpr const char* kSecret = "of the process alone";

/// The kernel then says of openat2() what an older one does, to this thread.
bool hide_openat2() {
  std::array<sock_filter, 4> code{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{code.size(), code.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
         ::syscall(SYS_openat2, AT_FDCWD, "/", nullptr, 0) == -1 && errno == ENOSYS;
}

/// The thread has Ann's rights for files from now on, and no capability, as threads of a service that serves her have.
bool become_ann() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  bool done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(SYS_setgroups, 0, nullptr) == 0;
  ::setfsgid(kAnn);
  ::setfsuid(kAnn);
  return done && ::syscall(SYS_capset, &header, none.data()) == 0 && acts_for_another_user();
}

class Files : public ::testing::Test {
 protected:
  Files() {
    std::string name = (fs::temp_directory_path() / "catena-files-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::permissions(folder_, fs::perms::all);
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string path(std::string const& name) const { return folder_ / name; }
  std::string write(std::string const& name, std::string const& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string link(std::string const& name, std::string const& target) const {
    fs::create_symlink(target, path(name));
    return path(name);
  }

  fs::path folder_;
};

/// With openat2() and without.
class FilesOfAnn : public Files, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "root alone can act for others";
    }
  }
  /// Does `work` with Ann's rights.
  static void as_ann(std::function<void()> const& work) {
    std::thread([&work] {
      ASSERT_TRUE(become_ann());
      ASSERT_TRUE(GetParam() || hide_openat2());
      work();
    }).join();
  }
};

INSTANTIATE_TEST_SUITE_P(, FilesOfAnn, ::testing::Bool(),
                         [](auto const& test) { return std::string(test.param ? "openat2" : "in_steps"); });

TEST_P(FilesOfAnn, are_opened_by_whatever_name_they_have) {
  fs::create_directories(path("a/b"));
  write("a/file", "text");
  link("a/b/up", "../file");
  link("whole", path("a/b/up"));
  link("folder", "a/b/");
  link("loop", "loop");
  as_ann([&] {
    for (const char* name : {"a/file", "a/b/up", "whole", "folder/up", "folder/../b//./up", "a/b/../../whole"}) {
      const Result<std::string> text = read_file(path(name), 4);
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(*text, "text");
    }
    EXPECT_TRUE(open_named_file(path("folder/"), O_RDONLY | O_DIRECTORY, kFolder).ok());
    EXPECT_TRUE(open_to_read("/dev/null", kCharacterDevice).ok());
    EXPECT_TRUE(absl::IsNotFound(open_to_read(path("a/none"), kRegularFile).status()));
    EXPECT_TRUE(absl::IsNotFound(open_to_read("", kRegularFile).status()));
    EXPECT_FALSE(open_to_read(path("a/file/"), kRegularFile).ok());
    EXPECT_FALSE(open_to_read(path("a/file/x"), kRegularFile).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(open_to_read(path("loop"), kRegularFile).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(open_named_file(path("whole"), O_RDONLY | O_NOFOLLOW, kRegularFile).status()) ||
                absl::IsPermissionDenied(open_named_file(path("whole"), O_RDONLY | O_NOFOLLOW, kRegularFile).status()));
  });
}

TEST_P(FilesOfAnn, are_made_with_her_rights_and_no_others_are) {
  fs::create_directory(path("roots"));
  ::chmod(path("roots").c_str(), 0755);
  link("dangling", "new");
  link("into", path("roots/new"));
  write("precious", "precious");
  ::chmod(path("precious").c_str(), 0644);
  as_ann([&] {
    EXPECT_TRUE(open_named_file(path("dangling"), O_WRONLY | O_CREAT, kRegularFile, 0600).ok());
    EXPECT_TRUE(
        absl::IsPermissionDenied(open_named_file(path("into"), O_WRONLY | O_CREAT, kRegularFile, 0600).status()));
    EXPECT_TRUE(absl::IsPermissionDenied(open_named_file(path("precious"), O_WRONLY, kRegularFile).status()));
    EXPECT_TRUE(absl::IsPermissionDenied(open_to_read("/etc/shadow", kRegularFile).status()));
  });
  struct stat made {};
  ASSERT_EQ(::lstat(path("new").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, kAnn);
  EXPECT_TRUE(fs::is_empty(path("roots")));
}

TEST_P(FilesOfAnn, are_none_of_the_process) {
  // all may read and write these: it is not their mode that keeps Ann out
  const FileDescriptor memory(::memfd_create("secret", 0));
  ASSERT_EQ(::pwrite(memory.get(), kSecret, std::string_view(kSecret).size(), 0),
            static_cast<ssize_t>(std::string_view(kSecret).size()));
  fs::create_directory(path("closed"));
  const FileDescriptor inside(::open(write("closed/file", kSecret).c_str(), O_RDWR));
  ::chmod(path("closed/file").c_str(), 0666);
  ::chmod(path("closed").c_str(), 0700);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const FileDescriptor out(pipe[0]);
  const FileDescriptor in(pipe[1]);
  link("fds", "/proc/self/fd");
  std::vector<std::string> names{"/proc/self/maps",
                                 "/proc/self/environ",
                                 concat("/proc/", ::getpid(), "/maps"),
                                 "/proc/thread-self/status",
                                 concat("/proc/self/cwd/", "x"),
                                 "/proc/version",
                                 link("maps", "/proc/self/maps"),
                                 "/sys/kernel/uevent_seqnum"};
  for (const int fd : {memory.get(), inside.get(), out.get()}) {
    for (const char* folder : {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"}) {
      names.push_back(concat(folder, fd));
      names.push_back(link(concat("link", names.size()), names.back()));
    }
    names.push_back(path(concat("fds/", fd)));
  }
  std::ofstream(path("x")) << kSecret;
  fs::current_path(folder_);
  for (std::string const& name : names) {
    if (fs::exists(name)) {  // /sys is not everywhere
      EXPECT_TRUE(open_to_read(name, kAnyStream).ok()) << name << ": the process itself opens it";
      EXPECT_TRUE(check_name(name).ok()) << name;
    }
  }
  as_ann([&] {
    for (std::string const& name : names) {
      if (!fs::exists(name)) {
        EXPECT_EQ(name, "/sys/kernel/uevent_seqnum");
        continue;
      }
      EXPECT_TRUE(absl::IsPermissionDenied(open_to_read(name, kAnyStream).status())) << name;
      EXPECT_TRUE(absl::IsPermissionDenied(read_file(name, 1 << 20, kAnyStream).status())) << name;
      EXPECT_TRUE(absl::IsPermissionDenied(check_name(name))) << name;
      EXPECT_TRUE(absl::IsPermissionDenied(open_named_file(name, O_RDWR | O_CREAT, kAnyStream, 0600).status())) << name;
    }
    EXPECT_FALSE(open_named_file(concat("/proc/self/fd/", memory.get(), "/"), O_RDONLY, kFolder).ok());
  });
  fs::current_path("/");
}

/// However it was opened.
TEST_P(FilesOfAnn, have_names) {
  OpenedFile memory{FileDescriptor(::memfd_create("secret", 0))};
  ASSERT_EQ(::fstat(memory.fd.get(), &memory.status), 0);
  EXPECT_TRUE(check_opened(memory, "x", kRegularFile).ok()) << "of the process itself";
  OpenedFile named{FileDescriptor(::open(write("named", "x").c_str(), O_RDONLY))};
  ASSERT_EQ(::fstat(named.fd.get(), &named.status), 0);
  OpenedFile maps{FileDescriptor(::open("/proc/self/maps", O_RDONLY))};
  ASSERT_EQ(::fstat(maps.fd.get(), &maps.status), 0);
  as_ann([&] {
    EXPECT_TRUE(absl::IsPermissionDenied(check_opened(memory, "x", kRegularFile)));
    EXPECT_TRUE(absl::IsPermissionDenied(check_opened(maps, "x", kRegularFile)));
    EXPECT_TRUE(check_opened(named, "x", kRegularFile).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(check_opened(named, "x", kFolder)));
    EXPECT_TRUE(absl::IsPermissionDenied(check_opened(OpenedFile(), "x", kRegularFile))) << "what is not known";
  });
}

TEST_P(FilesOfAnn, are_no_devices_but_those_for_all) {
  if (!open_to_read("/dev/ptmx", kCharacterDevice).ok()) {
    GTEST_SKIP() << "there are no terminals here";
  }
  ASSERT_EQ(::mknod(path("own").c_str(), S_IFCHR | 0666, makedev(5, 0)), 0) << "the terminal of whoever opens it";
  as_ann([&] {
    for (std::string const& name : {std::string("/dev/ptmx"), path("own")}) {
      EXPECT_FALSE(open_to_read(name, kAnyStream).ok()) << name;
      EXPECT_TRUE(absl::IsPermissionDenied(check_name(name))) << name;
    }
    EXPECT_TRUE(open_to_read("/dev/zero", kAnyStream).ok());
    EXPECT_TRUE(open_named_file("/dev/full", O_WRONLY, kAnyStream).ok());
  });
}

/// Two names change places until both were seen, whatever was looked at before.
TEST_P(FilesOfAnn, are_judged_when_they_are_open) {
  const FileDescriptor memory(::memfd_create("secret", 0));
  ASSERT_EQ(::pwrite(memory.get(), kSecret, std::string_view(kSecret).size(), 0),
            static_cast<ssize_t>(std::string_view(kSecret).size()));
  const std::string name = write("innocent", "innocent");
  const std::string other = link("other", concat("/proc/self/fd/", memory.get()));
  std::atomic<bool> is_done = false;
  std::thread exchange([&] {
    while (!is_done) {
      ::renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
    }
  });
  as_ann([&] {
    constexpr int kEach = 200;
    for (int innocent = 0, refused = 0; innocent < kEach || refused < kEach;) {
      const Result<std::string> text = read_file(name, 1 << 20);
      if (text.ok()) {
        ASSERT_EQ(*text, "innocent");
      } else {
        ASSERT_TRUE(absl::IsPermissionDenied(text.status())) << text.status();
      }
      innocent += text.ok() ? 1 : 0;
      refused += text.ok() ? 0 : 1;
    }
  });
  is_done = true;
  exchange.join();
}

TEST_P(FilesOfAnn, may_be_replaced_while_they_are_opened) {
  const std::string name = write("rules", "old");
  std::atomic<bool> is_done = false;
  std::thread replace([&] {
    while (!is_done) {
      write("rules.new", "new");
      fs::rename(path("rules.new"), name);
    }
  });
  as_ann([&] {
    for (int i = 0; i < 3000; ++i) {
      const Result<OpenedFile> file = open_to_read(name, kRegularFile);
      ASSERT_TRUE(file.ok()) << file.status();
    }
  });
  is_done = true;
  replace.join();
}

/// As the kernel has it, where fs.protected_symlinks is set, as it is on all distributions.
TEST_P(FilesOfAnn, are_found_through_no_link_of_others_where_all_may_write) {
  int is_protected = 0;
  std::ifstream("/proc/sys/fs/protected_symlinks") >> is_protected;
  if (GetParam() && is_protected == 0) {
    GTEST_SKIP() << "links are not protected here";
  }
  fs::create_directory(path("sticky"));
  ASSERT_EQ(::chown(path("sticky").c_str(), kAnn + 1, 0), 0);
  ASSERT_EQ(::chmod(path("sticky").c_str(), 01777), 0);
  write("file", "text");
  for (const uid_t owner : {kAnn, kAnn + 1, kAnn + 2}) {
    const std::string name = link(concat("sticky/", owner), path("file"));
    ASSERT_EQ(::lchown(name.c_str(), owner, 0), 0);
    as_ann([&] { EXPECT_EQ(open_to_read(name, kRegularFile).ok(), owner != kAnn + 2) << owner; });
  }
}

TEST_F(Files, are_read_to_a_bound_and_not_waited_for) {
  const std::string name = write("file", "0123456789");
  EXPECT_EQ(read_file(name, 10).value(), "0123456789");
  EXPECT_TRUE(absl::IsInvalidArgument(read_file(name, 9).status()));
  fs::resize_file(write("sparse", ""), std::uintmax_t{1} << 40);
  const Status sparse = read_file(path("sparse"), 1 << 20).status();
  EXPECT_TRUE(absl::IsInvalidArgument(sparse));
  EXPECT_THAT(std::string(sparse.message()), HasSubstr("1099511627776 bytes; such a file has at most 1048576"));
  EXPECT_TRUE(absl::IsInvalidArgument(read_file("/dev/zero", 1 << 20, kAnyStream).status())) << "no end";
  EXPECT_FALSE(read_file("/proc/self/status", 16).ok()) << "of 0 bytes, as the system has it";
  EXPECT_GT(read_file("/proc/self/status", 1 << 20)->size(), 16U);
  EXPECT_EQ(read_file("/dev/null", 0, kCharacterDevice).value(), "");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(read_file(path("fifo"), 10).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(read_file(folder_, 10).status()));
  EXPECT_TRUE(absl::IsNotFound(read_file(path("none"), 10).status()));
  EXPECT_TRUE(absl::IsUnavailable(open_named_file(path("fifo"), O_WRONLY | O_NONBLOCK, kFifo).status())) << "no reader";
}

}  // namespace
}  // namespace catena

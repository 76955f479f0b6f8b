// Debug information that is not in the module: where it is found, what is refused, and what is said when it is missing.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "binary/debug_search.h"
#include "symbols/resolve.h"
#include "test/symbols/fixture.h"

namespace karst::binary {
namespace {

using namespace symbols::test;
namespace fs = std::filesystem;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char c : bytes) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

class DebugFilesTest : public testing::Test {
 protected:
  DebugFilesTest() {
    fs::create_directories(here() / "app");
    fs::create_directories(here() / "debug");
    search_.directories = {here() / "debug"};
  }
  fs::path here() const { return directory_.path(); }

  /// A stripped program with a debug link, without its debug file.
  fs::path program() const {
    const fs::path path = here() / "app" / "app";
    fs::copy_file(fixture("debuglink/app"), path, fs::copy_options::overwrite_existing);
    return path;
  }
  void put_debug_file(const fs::path& to) const {
    fs::create_directories(to.parent_path());
    fs::copy_file(fixture("debuglink/app.debug"), to, fs::copy_options::overwrite_existing);
  }
  static fs::path by_build_id() {
    const std::string digits = hex(load_fixture("optimised").build_id());
    return fs::path(".build-id") / digits.substr(0, 2) / (digits.substr(2) + ".debug");
  }
  symbols::SymbolTable load(const fs::path& path) const {
    auto table = symbols::SymbolTable::load(path, "", search_);
    if (!table) throw std::runtime_error(table.error().message);
    return std::move(*table);
  }

  TemporaryDirectory directory_;
  DebugSearch search_;
};

TEST_F(DebugFilesTest, AreFoundByBuildIdBelowAnyDirectory) {
  put_debug_file(here() / "debug" / by_build_id());
  const auto table = load(program());
  EXPECT_TRUE(table.has_debug_info());
  EXPECT_EQ(table.debug_missing(), "");
  EXPECT_EQ(table.size(), load_fixture("optimised").size());
}

TEST_F(DebugFilesTest, AreFoundByLinkBesideInDotDebugAndBelowDirectories) {
  const fs::path app = program();
  for (const fs::path& place :
       {app.parent_path() / "app.debug", app.parent_path() / ".debug" / "app.debug",
        here() / "debug" / app.parent_path().relative_path() / "app.debug", here() / "debug" / "app.debug"}) {
    put_debug_file(place);
    EXPECT_TRUE(load(app).has_debug_info()) << place;
    fs::remove(place);
  }
  EXPECT_FALSE(load(app).has_debug_info());
}

TEST_F(DebugFilesTest, OfAnotherBuildAreNotTaken) {
  const fs::path app = program();
  fs::copy_file(fixture("dwarf5"), app.parent_path() / "app.debug");
  const auto table = load(app);
  EXPECT_FALSE(table.has_debug_info());
  EXPECT_NE(table.debug_missing().find((app.parent_path() / "app.debug").string() + " belongs to another build"),
            std::string::npos)
      << table.debug_missing();
}

TEST_F(DebugFilesTest, WithoutBuildIdsAreComparedByChecksum) {
  const fs::path app = here() / "app" / "no_id";
  const std::string strip = "cd " + app.parent_path().string() + " && cp " + fixture("no_build_id").string() +
                            " whole && objcopy --only-keep-debug whole no_id.debug && "
                            "objcopy --strip-all --add-gnu-debuglink=no_id.debug whole no_id && rm whole";
  ASSERT_EQ(std::system(strip.c_str()), 0);
  EXPECT_TRUE(load(app).has_debug_info());
  const fs::path file = app.parent_path() / "no_id.debug";
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(file, bytes);
  const auto table = load(app);
  EXPECT_FALSE(table.has_debug_info());
  EXPECT_NE(table.debug_missing().find("belongs to another build"), std::string::npos) << table.debug_missing();
}

TEST_F(DebugFilesTest, ThatLinkToThemselvesAreNoneAndPipesDoNotHang) {
  const fs::path app = here() / "app" / "app.debug";  // the name in its own link
  fs::copy_file(fixture("debuglink/app"), app);
  EXPECT_FALSE(load(app).has_debug_info());
  ASSERT_EQ(::mkfifo((here() / "debug" / "app.debug").c_str(), 0600), 0);
  EXPECT_FALSE(load(app).has_debug_info());
}

TEST_F(DebugFilesTest, ThatAreMissingMakeOneLineWithBuildIdAndWays) {
  const auto whole = load_fixture("optimised");
  reader::Process process;
  process.modules.resize(1);
  process.modules[0].path = program();
  process.modules[0].build_id = whole.build_id();
  process.functions.resize(11);
  for (std::uint32_t id = 1; id <= 10; ++id) {
    process.functions[id].id = id;
    process.functions[id].address = whole.at(id).begin;
  }
  symbols::ResolveOptions options;
  options.cache = symbols::Cache();
  options.debug = search_;
  const auto result = symbols::resolve(process, options);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_EQ(result.problems[0].count, 10U);
  const std::string& message = result.problems[0].message;
  for (const std::string& part : {process.modules[0].path, std::string("app.debug"), hex(whole.build_id()),
                                  std::string("--debug-dir"), std::string("DEBUGINFOD_URLS"), std::string("-dbgsym")}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
}

TEST_F(DebugFilesTest, InSectionsCompressedWithZstdAreReadHereAndApart) {
  for (const char* name : {"zstd_sections", "zlib_sections"}) {
    const auto table = load_fixture(name);
    ASSERT_TRUE(table.has_debug_info()) << name;
    const auto plain = load_fixture("optimised");
    ASSERT_EQ(table.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(table.at(i).name, plain.at(i).name);
      EXPECT_EQ(table.at(i).line, plain.at(i).line);
    }
  }
  const fs::path app = program();
  fs::create_directories((here() / "debug" / by_build_id()).parent_path());
  const std::string command = "objcopy --only-keep-debug --compress-debug-sections=zstd " +
                              fixture("optimised").string() + " " + (here() / "debug" / by_build_id()).string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(load(app).has_debug_info());
}

TEST_F(DebugFilesTest, WithDamagedZstdGiveAnErrorOrFewerNames) {
  const std::string whole = read_file(fixture("zstd_sections"));
  const fs::path app = here() / "app" / "damaged";
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 150) {
    std::string bytes = whole;
    for (std::size_t i = at; i < std::min(at + 4, bytes.size()); ++i) bytes[i] = static_cast<char>(~bytes[i]);
    write_file(app, bytes);
    refused += symbols::SymbolTable::load(app, "").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 10);
}

TEST_F(DebugFilesTest, OfDwzAreReadWithTheirCommonFileAndTheLackOfItIsSaid) {
  if (std::system("command -v dwz > /dev/null") != 0) GTEST_SKIP() << "dwz is not installed";
  const std::string make = "cd " + (here() / "app").string() + " && cp " + fixture("inlined_dwarf4").string() +
                           " one && cp " + fixture("optimised_dwarf4").string() + " two && cp two three && dwz -m " +
                           (here() / "app" / "common.debug").string() + " -M common.debug one two three";
  ASSERT_EQ(std::system(make.c_str()), 0);
  const auto table = load(here() / "app" / "two");
  const auto plain = load_fixture("optimised_dwarf4");
  EXPECT_EQ(table.debug_incomplete(), "");
  ASSERT_EQ(table.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(table.at(i).name, plain.at(i).name);
    EXPECT_EQ(table.at(i).file, plain.at(i).file);
    EXPECT_EQ(table.at(i).line, plain.at(i).line);
    EXPECT_EQ(table.at(i).inlined_count, plain.at(i).inlined_count);
  }
  fs::create_directories(here() / "debug" / ".dwz");
  fs::rename(here() / "app" / "common.debug", here() / "debug" / ".dwz" / "common.debug");
  EXPECT_EQ(load(here() / "app" / "two").debug_incomplete(), "");
  fs::remove(here() / "debug" / ".dwz" / "common.debug");
  const auto poorer = load(here() / "app" / "two");
  EXPECT_NE(poorer.debug_incomplete().find("common.debug (build-id "), std::string::npos) << poorer.debug_incomplete();
  EXPECT_FALSE(symbols::Cache(here() / "cache").save(poorer)) << "the file may be installed later";
}

TEST_F(DebugFilesTest, OfSplitDwarfThatAreGoneAreCountedAndNotCached) {
  EXPECT_EQ(load_fixture("inlined_split").debug_incomplete(), "");
  const auto table = load_fixture("split_gone");
  EXPECT_TRUE(table.has_debug_info()) << "the line table stays in the program";
  EXPECT_NE(table.debug_incomplete().find("1 of 1 units"), std::string::npos) << table.debug_incomplete();
  EXPECT_NE(table.debug_incomplete().find(".dwo"), std::string::npos);
  EXPECT_FALSE(symbols::Cache(here() / "cache").save(table));
  EXPECT_NE(load_fixture("split_packed").debug_incomplete().find("split_packed.dwp is there"), std::string::npos);
}

TEST(Vdso, HasItsNamesByEitherName) {
  for (const char* name : {"[vdso]", "linux-vdso.so.1"}) {
    auto table = symbols::SymbolTable::load(name, "");
    ASSERT_TRUE(table.ok()) << table.error().message;
    bool found = false;
    for (std::size_t i = 0; i < table->size(); ++i) {
      found = found || table->at(i).name.find("clock_gettime") != std::string_view::npos;
    }
    EXPECT_TRUE(found);
  }
  EXPECT_FALSE(symbols::SymbolTable::load("[vdso]", "another kernel's").ok());
}

/// Sets a variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  bool had_ = false;
  std::string old_;
};

TEST(DebugSearch, TakesDirectoriesAndServersFromTheEnvironment) {
  {
    Variable directories("KARST_DEBUG_DIR", "/a::/b c:");
    Variable servers("DEBUGINFOD_URLS", " ");
    const auto search = DebugSearch::of_environment();
    EXPECT_EQ(search.directories, (std::vector<fs::path>{"/a", "/b c"}));
    EXPECT_EQ(search.servers, nullptr);
  }
  Variable servers("DEBUGINFOD_URLS", "http://127.0.0.1:1");
  EXPECT_EQ(DebugSearch::of_environment().servers, nullptr) << "nobody asked karst to ask";
  EXPECT_TRUE(DebugSearch::of_environment().ask_servers());
  Variable wanted("KARST_DEBUGINFOD", "1");
  EXPECT_NE(DebugSearch::of_environment().servers, nullptr);
  Variable none("DEBUGINFOD_URLS", " ");
  EXPECT_FALSE(DebugSearch::of_environment().ask_servers());
}

TEST(DebugSearch, AServerThatIsNotThereIsSaidOnceAndNotWaitedFor) {
  TemporaryDirectory cache;
  Variable cached("DEBUGINFOD_CACHE_PATH", cache.path().c_str());
  Variable urls("DEBUGINFOD_URLS", "http://127.0.0.1:1");
  auto servers = Debuginfod::of_environment();
  ASSERT_NE(servers, nullptr);
  const auto first = servers->find(std::string(20, 'x'));
  ASSERT_FALSE(first.ok());
  EXPECT_NE(first.error().message.find("http://127.0.0.1:1"), std::string::npos) << first.error().message;
  EXPECT_FALSE(servers->find(std::string(20, 'y')).ok());
}

TEST(DebugSearch, AServerThatSaysNothingIsGivenUp) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  TemporaryDirectory cache;
  Variable cached("DEBUGINFOD_CACHE_PATH", cache.path().c_str());
  Variable urls("DEBUGINFOD_URLS", ("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port))).c_str());
  Debuginfod servers(1);
  const auto answer = servers.find(std::string(20, 'x'));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("do not answer"), std::string::npos) << answer.error().message;
  EXPECT_EQ(servers.find(std::string(20, 'z')).error().message, answer.error().message);
  ::close(listener);
}

}  // namespace
}  // namespace karst::binary

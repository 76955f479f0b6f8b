// Modules that are not what they should be: an Error that names the file, or fewer names; never a crash.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>
#include <string>

#include "fixture.h"

namespace karst::symbols {
namespace {

using namespace test;

void expect_error(const std::filesystem::path& path, const std::string& part) {
  auto table = SymbolTable::load(path, "");
  ASSERT_FALSE(table.ok()) << path;
  EXPECT_NE(table.error().message.find(path.string()), std::string::npos) << table.error().message;
  EXPECT_NE(table.error().message.find(part), std::string::npos) << table.error().message;
}

/// Asks for every row, so that sanitizers see every access.
void use(const SymbolTable& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    Symbol symbol = table.at(i);
    EXPECT_LT(symbol.begin, symbol.end);
    EXPECT_TRUE(table.lookup(symbol.begin).has_value());
  }
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(Damage, MissingFilesDirectoriesAndFifosAreErrors) {
  TemporaryDirectory directory;
  expect_error(directory.path() / "missing", "No such file");
  expect_error(directory.path(), "not a regular file");
  std::filesystem::path fifo = directory.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  expect_error(fifo, "not a regular file");
}

TEST(Damage, EmptyTextAndObjectFilesAreErrors) {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "file";
  for (const std::string& bytes : {std::string(), std::string("#!/bin/sh\nexit 0\n"),
                                   std::string("\x7f"
                                               "ELF"),
                                   std::string("\x7f"
                                               "ELF") +
                                       std::string(60, '\xff'),
                                   std::string(4096, '\0')}) {
    write_file(file, bytes);
    expect_error(file, "cannot read symbols");
  }
  expect_error(fixture("object.o"), "neither an executable nor a shared library");
}

TEST(Damage, AnotherArchitectureIsAnError) {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "file";
  std::string bytes = read_file(fixture("no_debug"));
  bytes[18] = static_cast<char>(0xb7);  // e_machine: AArch64
  write_file(file, bytes);
  expect_error(file, "x86-64");
}

TEST(Damage, AFileCutAnywhereGivesAnErrorOrASmallerTable) {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "file";
  for (const char* name : {"dwarf5", "compressed"}) {
    std::string bytes = read_file(fixture(name));
    std::size_t whole = load_fixture(name).size();
    for (std::size_t size = 0; size < bytes.size(); size += size < 1024 ? 37 : 997) {
      write_file(file, bytes.substr(0, size));
      auto table = SymbolTable::load(file, "");
      if (!table) continue;
      use(*table);
      EXPECT_LE(table->size(), whole + 1) << "cut at " << size;
    }
  }
}

TEST(Damage, FlippedHeaderAndSymbolBytesDoNoHarm) {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "file";
  const std::string whole = read_file(fixture("no_debug"));
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    // The ELF header, or anything: symbol table, section headers, notes.
    std::size_t range = round % 2 == 0 ? 64 : bytes.size();
    for (int i = 0; i < 1 + round % 8; ++i) bytes[random() % range] = static_cast<char>(random());
    write_file(file, bytes);
    if (auto table = SymbolTable::load(file, "")) use(*table);
  }
}

TEST(Damage, FlippedBytesOfDebugInformationDoNoHarm) {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "file";
  const std::string whole = read_file(fixture("dwarf5"));
  const std::size_t from = whole.size() / 3;  // behind the code: DWARF, symbols, section headers
  const std::size_t rows = load_fixture("dwarf5").size();
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 1 + round % 16; ++i)
      bytes[from + random() % (bytes.size() - from)] = static_cast<char>(random());
    write_file(file, bytes);
    auto table = SymbolTable::load(file, "");
    if (!table) continue;
    use(*table);
    EXPECT_LT(table->size(), 2 * rows + 100);
  }
}

TEST(Damage, LeavesNoFileOpen) {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "file";
  write_file(file, read_file(fixture("dwarf5")).substr(0, 2000));
  std::size_t before = open_files();
  for (int i = 0; i < 20; ++i) {
    (void)SymbolTable::load(file, "").ok();
    (void)SymbolTable::load(fixture("object.o"), "").ok();
    EXPECT_TRUE(SymbolTable::load(fixture("debuglink/app"), "").ok());
    EXPECT_FALSE(SymbolTable::load(fixture("dwarf5"), "another").ok());
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace karst::symbols

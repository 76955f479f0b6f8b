// SPDX-License-Identifier: MIT
#include "collect/launch/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/elf_file.h"
#include "collect/launch/foreign_file.h"
#include "collect/launch/plain_part.h"
#include "format/session.h"
#include "format/sled_note.h"
#include "patch/stack_switchers.h"

namespace karst::collect {
namespace {

using binary::ElfFile;
using namespace std::string_view_literals;

// Bounds of what is looked at, whatever a file says of itself. Real programs are far below.
constexpr std::uint64_t kMostNotes = std::uint64_t{1} << 20;  // bytes of a segment
constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 30;  // bytes of all tables of names
constexpr std::size_t kMostLibraries = 4096;                  // that a program asks for
constexpr std::size_t kMostName = 4096;

/// One of the tables that the note tells of has something in it, or it has code of -finstrument-functions. A program
/// of a plain compiler's objects that our wrapper linked has nothing, and is patched as others are. Addresses are
/// relative to their own fields.
bool tells_of_sleds(std::string_view content) {
  format::SledNote note{};
  std::memcpy(&note, content.data(), std::min(content.size(), sizeof note));
  const auto is_empty = [](std::int32_t begin, std::int32_t end) { return begin - end == sizeof begin; };
  return (note.flags & KARST_NOTE_FINSTRUMENT) != 0 || !is_empty(note.table_begin, note.table_end) ||
         (note.version >= 2 && !is_empty(note.xray_begin, note.xray_end)) ||
         (note.version >= 3 && !is_empty(note.clang_begin, note.clang_end));
}

bool has_karst_note(const ElfFile& file, const GElf_Phdr& segment, std::uint32_t type) {
  constexpr std::string_view kName(KARST_NOTE_NAME, sizeof KARST_NOTE_NAME);
  if (segment.p_type != PT_NOTE) return false;
  std::optional<bool> found;
  file.for_each_note(segment, kMostNotes, [&](const binary::ElfNote& note) {
    if (!found && note.type == type && note.name == kName)
      found = type != KARST_NOTE_TYPE || tells_of_sleds(note.content);
  });
  return found.value_or(false);
}

std::string script_interpreter(const std::filesystem::path& path) {
  const Descriptor file = open_regular_file(path);
  char start[255];
  const ssize_t size = file ? read(file.get(), start, sizeof start) : 0;
  std::string_view text(start, size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!text.starts_with("#!")) return {};
  text = text.substr(2, text.find('\n') - 2);
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin));
}

bool is_static(const ElfFile& file) {
  if (file.type() != ET_EXEC && file.type() != ET_DYN) return false;
  bool dynamic = false;
  bool loads = false;
  bool has_runtime = false;
  for (const GElf_Phdr& s : file.segments()) {
    dynamic = dynamic || s.p_type == PT_INTERP;
    loads = loads || s.p_type == PT_LOAD;
    has_runtime = has_runtime || has_karst_note(file, s, KARST_NOTE_TYPE_RUNTIME);
  }
  return loads && !dynamic && !has_runtime;
}

/// What the program itself asks for when it is loaded.
struct Wants {
  std::vector<std::string> libraries;  // DT_NEEDED
  bool notes = false;                  // functions of karst/karst.h
};

Wants wants_of(const ElfFile& file) {
  std::vector<std::uint64_t> names;   // places in the texts
  std::uint64_t texts = 0, size = 0;  // where they are in memory
  const std::vector<GElf_Phdr> segments = file.segments();
  for (const GElf_Phdr& s : segments) {
    if (s.p_type != PT_DYNAMIC) continue;
    Elf_Data* const data = file.chunk(s.p_offset, std::min<std::uint64_t>(s.p_filesz, kMostNotes), ELF_T_DYN);
    GElf_Dyn entry;
    for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr && entry.d_tag != DT_NULL; ++i) {
      if (entry.d_tag == DT_NEEDED && names.size() < kMostLibraries) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) texts = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
    }
  }
  Wants wants;
  const auto holder = std::find_if(segments.begin(), segments.end(), [texts](const GElf_Phdr& s) {
    return s.p_type == PT_LOAD && texts >= s.p_vaddr && texts - s.p_vaddr < s.p_filesz;
  });
  if (holder == segments.end()) return wants;
  const std::uint64_t offset = texts - holder->p_vaddr;
  const std::string_view all =
      file.text(holder->p_offset + offset, std::min({size, holder->p_filesz - offset, kMostTexts}));
  for (const std::uint64_t name : names)
    if (name < all.size())
      wants.libraries.emplace_back(
          all.substr(name, strnlen(all.data() + name, std::min(kMostName, all.size() - name))));
  wants.notes = all.find("\0karst_api_"sv) != std::string_view::npos;
  return wants;
}

/// A table of symbols' names has one of these, each with the zeros around it that are to be there.
std::string_view find_name(const ElfFile& file, std::initializer_list<std::string_view> names) {
  std::uint64_t most = kMostTexts;
  for (const binary::ElfSection& s : file.sections()) {
    if (s.header.sh_type != SHT_STRTAB) continue;
    if (s.header.sh_size > most) break;
    most -= s.header.sh_size;
    const auto texts = file.contents(s);
    if (texts.empty()) continue;
    for (const std::string_view name : names)
      if (memmem(texts.data(), texts.size(), name.data(), name.size()) != nullptr) return name;  // the quickest
  }
  return {};
}

/// Whether a symbol is called as compilers call what goes on with a coroutine.
bool has_coroutines(const ElfFile& file) { return !find_name(file, {".actor\0"sv, ".resume\0"sv}).empty(); }

/// A dynamic linker, by the names that it has for those who are linked with it.
enum class Loader { kNone, kGlibc, kOldGlibc, kTooOldGlibc, kOther };
Loader loader_of(const ElfFile& file) {
  const auto has = [&file](const auto& name) { return !find_name(file, {{name, sizeof name}}).empty(); };
  if (has(format::kOneLibrary)) return Loader::kGlibc;
  if (has(format::kAnyGlibc)) return has(format::kLeastGlibc) ? Loader::kOldGlibc : Loader::kTooOldGlibc;
  return find_name(file, {"\0dlopen\0"sv}).empty() ? Loader::kNone : Loader::kOther;
}

std::string interpreter_of(const ElfFile& file) {
  std::string_view path;
  for (const GElf_Phdr& s : file.segments())
    if (s.p_type == PT_INTERP) path = file.text(s.p_offset, s.p_filesz);
  return std::string(path.substr(0, path.find('\0')));
}

bool is_glibc(Loader loader) { return loader == Loader::kGlibc || loader == Loader::kOldGlibc; }

/// `loader` is to load the program.
void take_loader(Loader loader, Program& program) {
  program.has_old_glibc = loader == Loader::kOldGlibc;
  if (loader == Loader::kTooOldGlibc) program.why_foreign = kWhyOldLoader;
  if (loader == Loader::kOther) program.why_foreign = kWhyOtherLoader;
}

void take_interpreter(const ElfFile& file, Program& program) {
  const std::string path = interpreter_of(file);
  if (path.empty()) return;
  const ElfFile interpreter(open_regular_file(path));
  if (!interpreter.is_elf()) return;  // the system says what it thinks of that
  const Loader loader = loader_of(interpreter);
  take_loader(loader == Loader::kNone ? Loader::kOther : loader, program);
}

/// What a dynamic linker of glibc is told to load, by its command line. Empty: nothing, or it looks for it in its own
/// directories.
std::string loaded_by(const std::vector<std::string>& command) {
  constexpr std::string_view kWithValue[] = {"--library-path",     "--inhibit-rpath", "--audit",
                                             "--preload",          "--argv0",         "--glibc-hwcaps-prepend",
                                             "--glibc-hwcaps-mask"};
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (std::find(std::begin(kWithValue), std::end(kWithValue), command[i]) != std::end(kWithValue))
      ++i;
    else if (command[i] != "--inhibit-cache")
      return command[i].starts_with("--") || command[i].find('/') == std::string::npos ? std::string() : command[i];
  }
  return {};
}

Program describe(std::filesystem::path path, const std::vector<std::string>& command, int scripts) {
  Program program;
  program.executable = access(path.c_str(), X_OK) == 0;
  program.interpreter = script_interpreter(path);
  if (!program.interpreter.empty() && scripts != 0) {
    const std::string shell = program.interpreter.substr(0, program.interpreter.find_first_of(" \t"));
    const Program of_shell = describe(shell, {}, scripts - 1);
    program.why_foreign = of_shell.why_foreign;
    program.has_old_glibc = of_shell.has_old_glibc;
  }
  const ElfFile file(open_regular_file(path));
  if (file.is_elf()) {
    const auto segments = file.segments();
    program.has_sleds = std::any_of(segments.begin(), segments.end(),
                                    [&file](const GElf_Phdr& s) { return has_karst_note(file, s, KARST_NOTE_TYPE); });
    if (program.has_sleds) program.dead_sleds = find_dead_sleds(file);
    program.has_plain_part = program.has_sleds && has_plain_part(file);
    program.is_static = is_static(file);
    take_interpreter(file, program);
    if (program.is_static) {
      const Loader loader = loader_of(file);
      const std::string loaded = is_glibc(loader) ? loaded_by(command) : std::string();
      if (!loaded.empty()) {
        Program of_loader = describe(loaded, {}, 0);
        of_loader.file = std::exchange(of_loader.path, std::move(path));
        of_loader.executable = program.executable;
        of_loader.interpreter.clear();
        of_loader.is_static = false;
        of_loader.why_foreign = nullptr;
        of_loader.has_old_glibc = loader == Loader::kOldGlibc;
        return of_loader;
      }
      program.is_static = loader == Loader::kNone;
      take_loader(loader, program);
    }
    const Wants wants = wants_of(file);
    const std::vector<std::string_view> libraries(wants.libraries.begin(), wants.libraries.end());
    program.stack_switcher = patch::stack_switcher(libraries, [&file](auto names) { return find_name(file, names); });
    program.has_notes = wants.notes;
    program.has_libasan = std::any_of(libraries.begin(), libraries.end(),
                                      [](std::string_view name) { return name.starts_with("libasan.so"); });
    program.has_coroutines = has_coroutines(file);
  }
  program.file = path;
  program.path = std::move(path);
  return program;
}

constexpr int kMostScripts = 4;  // behind #! of one another; the kernel's limit

bool is_file(const std::filesystem::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

std::optional<Program> find_program(const std::vector<std::string>& command) {
  const std::string& name = command.at(0);
  if (name.find('/') != std::string::npos)
    return is_file(name) ? std::optional(describe(name, command, kMostScripts)) : std::nullopt;
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/bin:/usr/bin";
  std::optional<Program> not_executable;
  while (true) {
    const auto colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    const auto candidate = std::filesystem::path(directory.empty() ? "." : directory) / name;
    if (is_file(candidate)) {
      Program program = describe(candidate, command, kMostScripts);
      if (program.executable) return program;
      if (!not_executable) not_executable = std::move(program);
    }
    if (colon == std::string_view::npos) return not_executable;
    rest.remove_prefix(colon + 1);
  }
}

std::string program_of_process(const HeldProcess& process) {
  std::error_code error;
  std::string path = std::filesystem::read_symlink(process.path("exe"), error).string();
  const ElfFile file(open_regular_file(process.path("exe")));
  if (error || !file.is_elf() || !is_static(file) || !is_glibc(loader_of(file))) return path;
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // of a command line, which is the process's to write
  std::ifstream in(process.path("cmdline"), std::ios::binary);
  std::vector<std::string> command;
  std::size_t bytes = 0;
  for (std::string word; bytes < kMostBytes && std::getline(in, word, '\0'); bytes += word.size() + 1)
    command.push_back(word);
  const std::string loaded = loaded_by(command);
  if (loaded.empty()) return path;
  const auto whole = std::filesystem::path(loaded).is_absolute()
                         ? std::filesystem::path(loaded)
                         : std::filesystem::read_symlink(process.path("cwd"), error) / loaded;
  return error ? path : std::filesystem::weakly_canonical(whole, error).string();
}

Status check_traceable(const Program& program, const sandbox::Credentials& as, bool may_be_static) {
  const std::string name = program.path.string();
  struct stat status {};
  if (stat(program.path.c_str(), &status) == 0) {
    const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != as.uid;
    const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != as.gid;
    if (other_user || other_group)
      return Error{name +
                   " is setuid or setgid: the system does not let the tracing runtime be loaded into it. "
                   "Run a copy without those bits, or run it as the user it belongs to"};
    if (as.uid != 0 && getxattr(program.path.c_str(), "security.capability", nullptr, 0) > 0)
      return Error{name +
                   " has file capabilities: the system does not let the tracing runtime be loaded into it. "
                   "Run a copy of it"};
  }
  const ElfFile file(open_regular_file(program.path));
  if (!file.is_elf()) return Unit{};
  if (!file.is_x86_64())
    return Error{name + " is a program for another architecture; this Karst traces x86-64 programs"};
  if (program.is_static && !may_be_static)
    return Error{name +
                 " is statically linked: the tracing runtime cannot be loaded into it. Link it without -static, or "
                 "with libkarst.a inside (karst-gcc --karst-link -static)"};
  return Unit{};
}

}  // namespace karst::collect

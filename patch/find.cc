#include "patch/find.h"

#include <utility>

#include "format/patch_table.h"
#include "patch/named.h"
#include "patch/table.h"
#include "symbols/sandbox.h"

namespace karst::patch {
namespace {

/// Empty: done, else why not.
std::string look(int descriptor, PlaceOptions options, const WantedNames* wanted, ModulePlaces& found) {
  const auto image = ElfImage::read(descriptor);
  if (!image) return image.error().message;
  if (image->has_restartable_sequences())
    return "it has restartable sequences (rseq), whose code must stay where it is";
  const auto frames = Frames::read(*image);
  if (!frames) return frames.error().message;
  if (wanted != nullptr) {
    options.named = addresses_of(*image, *wanted, found.near);
    if (options.named->empty()) return {};
  }
  const Code code = Code::decode(*image, *frames);
  const std::vector<Function> functions = find_places(*frames, code, options);
  for (const Function& f : functions) found.functions.push_back({f.code.begin, f.code.end, f.left_out});
  if (options.named) judge_named(*options.named, *frames, found.functions);
  if (found.patched() != 0) found.table = make_table(*image, code, functions);
  return {};
}

}  // namespace

std::uint64_t ModulePlaces::patched() const { return counts()[static_cast<std::size_t>(LeftOut::kNot)]; }

std::array<std::uint64_t, kLeftOutCount> ModulePlaces::counts() const {
  std::array<std::uint64_t, kLeftOutCount> counts{};
  for (const Outcome& f : functions) ++counts[static_cast<std::size_t>(f.left_out)];
  return counts;
}

Result<ModulePlaces> find_in_file(int descriptor, const PlaceOptions& options,
                                  const std::optional<symbols::Credentials>& as, const WantedNames* wanted) {
  symbols::SandboxOptions sandbox{.as = as};
  sandbox.most = format::kMostPatchTable;
  sandbox.keep = {descriptor};
  const auto answer = symbols::in_sandbox(sandbox, [&](symbols::AnswerWriter& out) {
    ModulePlaces found;
    out.text(look(descriptor, options, wanted, found));
    out.text(found.table);
    out.number(found.functions.size());
    for (const Outcome& f : found.functions) {
      out.number(f.begin);
      out.number(f.end);
      out.number(static_cast<std::uint64_t>(f.left_out));
    }
    out.number(found.near.size());
    for (const std::string& name : found.near) out.text(name);
  });
  if (!answer) return answer.error();
  symbols::AnswerReader in(*answer);
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  ModulePlaces found;
  const auto table = in.bytes();
  found.table.assign(table.begin(), table.end());
  found.functions.resize(in.count(3 * sizeof(std::uint64_t)));
  for (Outcome& f : found.functions) {
    f.begin = in.number();
    f.end = in.number();
    const std::uint64_t why = in.number();
    if (why >= kLeftOutCount) return Error{"its reader gave no answer that makes sense"};
    f.left_out = static_cast<LeftOut>(why);
  }
  found.near.resize(in.count(sizeof(std::uint64_t)));
  for (std::string& name : found.near) name = in.text();
  return found;
}

}  // namespace karst::patch

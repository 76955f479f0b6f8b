// SPDX-License-Identifier: MIT
#include "patch/find.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "format/patch_table.h"
#include "format/sled_note.h"
#include "patch/named.h"
#include "patch/stack_switchers.h"
#include "patch/table.h"
#include "patch/tail_calls.h"
#include "sandbox/sandbox.h"

namespace karst::patch {
namespace {

bool take_reason(sandbox::AnswerReader& in, LeftOut& reason) {
  const std::uint64_t why = in.number();
  reason = why < kLeftOutCount ? static_cast<LeftOut>(why) : LeftOut::kUnknownCode;
  return why < kLeftOutCount;
}

/// A probe is that of the first choice that means it. `others`: names of some, if none is meant.
std::vector<ProbeEntry> wanted_probes(const ElfImage& image, const std::vector<ProbeChoice>& choices,
                                      std::vector<std::string>& others) {
  constexpr std::size_t kSome = 20;
  std::vector<ProbeEntry> wanted;
  if (choices.empty()) return wanted;
  for (ProbeNote& probe : probes_in(image)) {
    const auto choice =
        std::find_if(choices.begin(), choices.end(), [&](const ProbeChoice& c) { return c.matches(probe); });
    if (choice == choices.end()) {
      const std::string name = probe.full_name();
      if (others.size() < kSome && std::find(others.begin(), others.end(), name) == others.end())
        others.push_back(name);
      continue;
    }
    ProbeValues values = values_of(probe, *choice);
    wanted.push_back({std::move(probe), std::move(values), {}});
  }
  if (!wanted.empty()) others.clear();
  return wanted;
}

/// Functions of these names that the module exports; where there are two at one address, one stands for both. None of a
/// program with a sanitizer: what stands before its functions would be in the stacks that it reports.
std::vector<std::pair<std::uint64_t, std::string>> exported(const ElfImage& image,
                                                            const std::vector<std::string>& names) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  if (names.empty()) return found;
  for (const ElfImage::NamedCode& function : image.exported_functions()) {
    if (function.name == "__interceptor_malloc") return {};
    if (std::find(names.begin(), names.end(), function.name) != names.end())
      found.emplace_back(function.address, std::string(function.name));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
              found.end());
  return found;
}

/// In order. What resumes and ends coroutines says which one it is of, and is small where gcc makes it.
std::vector<std::uint64_t> parts_of_coroutines(const ElfImage& image) {
  std::vector<std::uint64_t> found;
  for (const ElfImage::NamedCode& symbol : image.functions())
    for (const std::string_view end : {".actor", ".destroy", ".resume", ".cleanup"})
      if (symbol.name.ends_with(end)) found.push_back(symbol.address);
  std::sort(found.begin(), found.end());
  return found;
}

/// In order: CPython's ways from one of its functions to the next, if libkarst can record those functions themselves
/// (runtime/interpreters/python_abi.h). Their calls would stand between all others.
std::vector<std::uint64_t> calls_of_python(const ElfImage& image) {
  constexpr std::string_view kSetter = "_PyInterpreterState_SetEvalFrameFunc";
  constexpr std::string_view kCalls[] = {"PyEval_EvalCode",
                                         "PyEval_EvalCodeEx",
                                         "PyObject_Call",
                                         "PyObject_CallFunction",
                                         "PyObject_CallFunctionObjArgs",
                                         "PyObject_CallMethod",
                                         "PyObject_CallMethodObjArgs",
                                         "PyObject_CallNoArgs",
                                         "PyObject_CallObject",
                                         "PyObject_CallOneArg",
                                         "PyObject_Vectorcall",
                                         "PyObject_VectorcallDict",
                                         "PyObject_VectorcallMethod",
                                         "PyVectorcall_Call",
                                         "_PyEval_EvalFrameDefault",
                                         "_PyFunction_Vectorcall",
                                         "_PyObject_Call",
                                         "_PyObject_CallMethod_SizeT",
                                         "_PyObject_Call_Prepend",
                                         "_PyObject_FastCallDictTstate",
                                         "_PyObject_MakeTpCall"};
  std::vector<std::uint64_t> found;
  bool is_python = false;
  for (const ElfImage::NamedCode& function : image.exported_functions()) {
    is_python = is_python || function.name == kSetter;
    if (std::find(std::begin(kCalls), std::end(kCalls), function.name) != std::end(kCalls))
      found.push_back(function.address);
  }
  if (!is_python) return {};
  std::sort(found.begin(), found.end());
  return found;
}

/// Empty: done, else why not.
std::string look(int descriptor, const WantedPlaces& wanted, ModulePlaces& found) {
  const auto image = ElfImage::read(descriptor);
  if (!image) return image.error().message;
  std::vector<ProbeEntry> probes = wanted_probes(*image, wanted.probes, found.other_probes);
  const auto detours = exported(*image, wanted.detours);
  for (const auto& [address, name] : detours) found.detours.push_back({name, LeftOut::kUnknownCode});
  if (!wanted.functions && probes.empty() && detours.empty()) return {};
  if (image->has_restartable_sequences())
    return "it has restartable sequences (rseq), whose code must stay where it is";
  const auto frames = Frames::read(*image);
  if (!frames) return frames.error().message;
  PlaceOptions options = wanted.options;
  if (wanted.named != nullptr) options.named = addresses_of(*image, *wanted.named, found.near);
  if (!wanted.functions) options.named.emplace();
  options.with_arguments = parts_of_coroutines(*image);
  options.interpreting = calls_of_python(*image);
  if (options.named && options.named->empty() && probes.empty() && detours.empty()) return {};
  for (const auto& detour : detours) options.detours.push_back(detour.first);
  for (const ProbeEntry& probe : probes) options.probes.push_back(probe.note.address);
  options.sleds = sleds_of(*image);
  const auto decoded = Code::decode(*image, *frames);
  if (!decoded) return decoded.error().message;
  const Code& code = *decoded;
  Places places = find_places(*frames, code, options);
  for (std::size_t i = 0; i < detours.size(); ++i) found.detours[i].left_out = places.detours[i].left_out;
  // A library that sees what is taken, and not all that is given back, would tell of leaks that are none.
  if (!found.has_all_detours()) {
    options.detours.clear();
    places = find_places(*frames, code, options);
  }
  for (const Function& f : places.functions) found.functions.push_back({f.code.begin, f.code.end, f.left_out});
  const std::vector<std::string_view> libraries = image->needed();
  found.libraries.assign(libraries.begin(), libraries.end());
  found.stack_switcher = stack_switcher(libraries, [&image](std::initializer_list<std::string_view> names) {
    for (const char* section : {".strtab", ".dynstr"}) {
      const auto bytes = image->contents(section);
      const std::string_view texts(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      for (const std::string_view name : names)
        if (texts.find(name) != std::string_view::npos) return name;
    }
    return std::string_view();
  });
  if (options.named) judge_named(*options.named, *frames, found.functions);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    ProbeEntry& probe = probes[i];
    probe.place = places.probes[i];
    // A semaphore that the program cannot write to is none.
    if (probe.note.semaphore != 0 && !image->is_writable(probe.note.semaphore, sizeof(std::uint16_t)))
      probe.place.left_out = LeftOut::kNoProbe;
    found.probes.push_back(
        {probe.note.full_name(), probe.note.address, probe.values.description, probe.place.left_out});
  }
  for (Probe& landing : places.landings) probes.push_back({{}, {}, std::move(landing)});
  find_calls_in_place(*image, *frames, places.functions);
  std::vector<DetourEntry> entries;
  for (std::size_t i = 0; i < places.detours.size(); ++i)
    entries.push_back({detours[i].second, std::move(places.detours[i])});
  if (found.patched() != 0 || !entries.empty())
    found.table = make_table(*image, code, places.functions, probes, entries);
  return {};
}

/// The same for the same wishes, and different for others.
std::string text_of(const WantedPlaces& wanted) {
  sandbox::AnswerWriter text;
  constexpr std::uint64_t kRules = 1;  // raised when other functions are left out for the same wishes
  text.number(kRules);
  text.number(wanted.functions ? 1 : 0);
  text.number(wanted.options.min_instructions);
  text.number(wanted.named != nullptr ? 1 : 0);
  if (wanted.named != nullptr) {
    text.number(wanted.named->texts.size());
    for (const std::string& glob : wanted.named->texts) text.text(glob);
    text.number(wanted.named->addresses.size());
    for (const std::uint64_t address : wanted.named->addresses) text.number(address);
  }
  text.number(wanted.probes.size());
  for (const ProbeChoice& probe : wanted.probes) text.text(probe.text);
  for (const std::string& detour : wanted.detours) text.text(detour);
  return {reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()};
}

/// What look() found. Hostile, as it comes from a process that read somebody's file, or from a cache.
Result<ModulePlaces> decode(std::span<const std::byte> answer) {
  const Error senseless{"its reader gave no answer that makes sense"};
  sandbox::AnswerReader in(answer);
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  ModulePlaces found;
  const auto table = in.bytes();
  found.table.assign(table.begin(), table.end());
  found.stack_switcher = in.text();
  found.functions.resize(in.count(3 * sizeof(std::uint64_t)));
  for (Outcome& f : found.functions) {
    f.begin = in.number();
    f.end = in.number();
    if (!take_reason(in, f.left_out)) return senseless;
  }
  found.probes.resize(in.count(4 * sizeof(std::uint64_t)));
  for (ProbeOutcome& p : found.probes) {
    p.name = in.text();
    p.address = in.number();
    p.description = in.text();
    if (!take_reason(in, p.left_out)) return senseless;
  }
  found.detours.resize(in.count(2 * sizeof(std::uint64_t)));
  for (DetourOutcome& d : found.detours) {
    d.name = in.text();
    if (!take_reason(in, d.left_out)) return senseless;
  }
  for (auto* names : {&found.other_probes, &found.libraries, &found.near}) {
    names->resize(in.count(sizeof(std::uint64_t)));
    for (std::string& name : *names) name = in.text();
  }
  if (!in.is_whole()) return senseless;
  return found;
}

}  // namespace

bool ModulePlaces::has_all_detours() const {
  return std::all_of(detours.begin(), detours.end(),
                     [](const DetourOutcome& d) { return d.left_out == LeftOut::kNot; });
}

std::uint64_t ModulePlaces::patched() const {
  const auto probes_in_it =
      std::count_if(probes.begin(), probes.end(), [](const ProbeOutcome& p) { return p.left_out == LeftOut::kNot; });
  return counts()[static_cast<std::size_t>(LeftOut::kNot)] + static_cast<std::uint64_t>(probes_in_it);
}

std::array<std::uint64_t, kLeftOutCount> ModulePlaces::counts() const {
  std::array<std::uint64_t, kLeftOutCount> counts{};
  for (const Outcome& f : functions) ++counts[static_cast<std::size_t>(f.left_out)];
  return counts;
}

Result<ModulePlaces> find_in_file(int descriptor, const WantedPlaces& wanted,
                                  const std::optional<sandbox::Credentials>& as, const TableCache& cache) {
  const auto key = [&] { return as ? TableCache::Key() : cache.key_of(descriptor, text_of(wanted)); };
  const TableCache::Key before = key();
  if (const auto kept = cache.find(before))
    if (auto places = decode(*kept)) return places;
  sandbox::SandboxOptions sandbox{.as = as};
  sandbox.most = format::kMostPatchTable;
  sandbox.keep = {descriptor};
  sandbox.helper = true;
  const auto answer = sandbox::in_sandbox(sandbox, [&](sandbox::AnswerWriter& out) {
    ModulePlaces found;
    out.text(look(descriptor, wanted, found));
    out.text(found.table);
    out.text(found.stack_switcher);
    out.number(found.functions.size());
    for (const Outcome& f : found.functions) {
      out.number(f.begin);
      out.number(f.end);
      out.number(static_cast<std::uint64_t>(f.left_out));
    }
    out.number(found.probes.size());
    for (const ProbeOutcome& p : found.probes) {
      out.text(p.name);
      out.number(p.address);
      out.text(p.description);
      out.number(static_cast<std::uint64_t>(p.left_out));
    }
    out.number(found.detours.size());
    for (const DetourOutcome& d : found.detours) {
      out.text(d.name);
      out.number(static_cast<std::uint64_t>(d.left_out));
    }
    for (const auto* names : {&found.other_probes, &found.libraries, &found.near}) {
      out.number(names->size());
      for (const std::string& name : *names) out.text(name);
    }
  });
  if (!answer) return answer.error();
  auto places = decode(*answer);
  // Whoever wrote to the file meanwhile has changed its key.
  if (places && key() == before) cache.save(before, *answer);
  return places;
}

}  // namespace karst::patch

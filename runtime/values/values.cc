// SPDX-License-Identifier: MIT
#include "runtime/values/values.h"

#include <sys/mman.h>

#include "arch/x86_64/vectors.h"
#include "format/patch_table.h"
#include "runtime/fibers/stacks.h"
#include "runtime/maintenance/control.h"
#include "runtime/modules/hooks.h"
#include "runtime/modules/modules.h"
#include "runtime/process/read_memory.h"
#include "runtime/process/steady_memory.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/note_words.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/seams.h"

// Read and written from outside, by karst (collect/live/noted_values.h).
extern "C" {
__attribute__((visibility("default"))) karst::format::ValueTables karst_noted_values;
}

namespace karst::runtime {

using namespace format;

namespace {

ArenaValueSpec* g_specs;     // private copies
std::uint64_t* g_functions;  // whose they are: addresses
std::uint16_t* g_numbers;    // of specs, by function: 1 + index; 0: none
std::uint32_t g_taken;       // specs that g_numbers has
std::uint8_t g_changes;      // karst_noted_values.changes, when these were taken

std::uint64_t vector_register(std::uint32_t number, const unsigned char* kept) {
  std::uint64_t low = 0;
  if (kept != nullptr && number < kVectorPlaces) copy(&low, arch::kept_vector(kept, number), sizeof low);
  if (kept != nullptr) return low;
  switch (number) {
    case 0:
      asm volatile("movq %%xmm0, %0" : "=m"(low));
      break;
    case 1:
      asm volatile("movq %%xmm1, %0" : "=m"(low));
      break;
    case 2:
      asm volatile("movq %%xmm2, %0" : "=m"(low));
      break;
    case 3:
      asm volatile("movq %%xmm3, %0" : "=m"(low));
      break;
    case 4:
      asm volatile("movq %%xmm4, %0" : "=m"(low));
      break;
    case 5:
      asm volatile("movq %%xmm5, %0" : "=m"(low));
      break;
    case 6:
      asm volatile("movq %%xmm6, %0" : "=m"(low));
      break;
    case 7:
      asm volatile("movq %%xmm7, %0" : "=m"(low));
      break;
    default:
      break;
  }
  return low;
}

/// A note that is being put together.
struct Values {
  unsigned char bytes[kMostValuesInNote + sizeof(ValuesTime) + 1 + 7];  ///< with the end, and what
                                                                        ///< record_note_and_call() may read
  std::uint32_t used = 0;
  std::uint32_t most_text = 0;
  std::uint64_t asking = 0;  ///< ticks that the kernel took
  std::uintptr_t stack = 0;
  const unsigned char* vectors = nullptr;  ///< where vector registers are kept; null: in themselves

  void start(std::uintptr_t of_stack, std::uint32_t most) {
    stack = of_stack;
    most_text = most < kMostValueBytes ? most : kMostValueBytes;
  }
  /// No value follows.
  void finish() {
    constexpr std::uint64_t kMost = ~ValuesTime{0};
    if (asking == 0) {
      bytes[used++] = kValuesEnd;
      return;
    }
    const auto took = static_cast<ValuesTime>(asking < kMost ? asking : kMost);
    copy(bytes + used, &took, sizeof took);
    used += sizeof took;
    bytes[used++] = kValuesEndTimed;
  }
  /// Where the value may be written behind its size; null: there is no room, which is noted.
  unsigned char* room(std::uint32_t size) {
    // So many values as there can be have at least their size byte.
    if (used + 1 + size + kMostValues + 1 > kMostValuesInNote) {
      end(kValueNoRoom, 0);
      return nullptr;
    }
    return bytes + used + 1;
  }
  void end(std::uint8_t head, std::uint32_t size) {
    if (used + 1 + size >= kMostValuesInNote) return;
    bytes[used] = head;
    used += 1 + size;
  }
  void add(std::uint64_t value) {
    unsigned char* to = room(8);
    if (to == nullptr) return;
    put_word(to, value);
    const std::uint32_t kept = note_bytes_of(value);
    end(static_cast<std::uint8_t>(kept), kept);
  }
  void add_memory(std::uint64_t address, std::uint32_t size) {
    if (size > kMostValueBytes) size = kMostValueBytes;
    unsigned char* to = room(size);
    if (to == nullptr) return;
    if (read_memory(address, to, size, stack, &asking) == size)
      end(static_cast<std::uint8_t>(size), size);
    else
      end(kValueUnreadable, 0);
  }
  /// `size`: of the text, if it is known; else it ends with a NUL.
  void add_text(std::uint64_t address, std::uint64_t size, bool sized) {
    if (address == 0 && (!sized || size == 0)) return sized ? end(0, 0) : end(kValueNull, 0);
    const bool cut = !sized || size > most_text;
    const std::uint32_t most = cut ? most_text + (sized ? 0 : 1) : static_cast<std::uint32_t>(size);
    if (most == 0) return end(0, 0);
    unsigned char* to = room(most);
    if (to == nullptr) return;
    const std::uint32_t got =
        sized ? read_memory(address, to, most, stack, &asking) : read_text(address, to, most, stack, &asking);
    if (sized)
      return got == most ? end(static_cast<std::uint8_t>(cut ? kValueCut + most : most), most)
                         : end(kValueUnreadable, 0);
    std::uint32_t length = 0;
    while (length + sizeof(std::uint64_t) <= got && first_nul(word_at(to + length)) == 0)
      length += sizeof(std::uint64_t);
    while (length < got && to[length] != 0) ++length;
    if (length < got) return end(static_cast<std::uint8_t>(length), length);
    if (length < most) return end(kValueUnreadable, 0);
    end(static_cast<std::uint8_t>(kValueCut + most_text), most_text);
  }
};

std::uint64_t in_place(const std::uint64_t* words, std::uint32_t number, const unsigned char* vectors = nullptr) {
  if (number >= kFirstVectorPlace) return vector_register(number - kFirstVectorPlace, vectors);
  return number < kMostPlace ? words[number] : 0;
}

const std::uint64_t* words_of(const SavedRegisters& saved) { return reinterpret_cast<const std::uint64_t*>(&saved); }

std::uint64_t first_bytes(std::uint64_t value, std::uint32_t bytes) {
  return bytes < 8 ? value & ((std::uint64_t{1} << (8 * bytes)) - 1) : value;
}

/// What kRegister or kConstant says.
std::uint64_t number_of(const ValueOp& op, const std::uint64_t* words, const unsigned char* vectors = nullptr) {
  if (op.how == static_cast<std::uint8_t>(ValueHow::kConstant))
    return first_bytes(static_cast<std::uint64_t>(std::int64_t{op.offset}), op.size);
  const std::uint64_t value = in_place(words, op.place, vectors) >> (8 * (static_cast<std::uint32_t>(op.offset) & 7));
  return first_bytes(value, op.size);
}

bool read_word(std::uint64_t address, std::uint64_t& word, Values& values) {
  auto* to = reinterpret_cast<unsigned char*>(&word);
  return read_memory(address, to, sizeof word, values.stack, &values.asking) == sizeof word;
}

void add(Values& values, const ValueOp& op, const std::uint64_t* words) {
  const auto place = [&](std::uint32_t number) { return in_place(words, number, values.vectors); };
  const std::uint64_t value = place(op.place);
  const std::uint64_t address = value + static_cast<std::uint64_t>(std::int64_t{op.offset});
  switch (static_cast<ValueHow>(op.how)) {
    case ValueHow::kRegister:
    case ValueHow::kConstant:
      return values.add(number_of(op, words, values.vectors));
    case ValueHow::kMemory:
      return value == 0 ? values.end(kValueNull, 0) : values.add_memory(address, op.size);
    case ValueHow::kText:
      return values.add_text(value, 0, false);
    case ValueHow::kViewText:
      return values.add_text(place(op.size & 0xff), value, true);
    case ValueHow::kSizedText:
    case ValueHow::kViewMemory: {
      std::uint64_t pair[2];
      if (value == 0) return values.end(kValueNull, 0);
      if (read_memory(address, reinterpret_cast<unsigned char*>(pair), sizeof pair, values.stack, &values.asking) !=
          sizeof pair)
        return values.end(kValueUnreadable, 0);
      const bool view = op.how == static_cast<std::uint8_t>(ValueHow::kViewMemory);
      return values.add_text(pair[view ? 1 : 0], pair[view ? 0 : 1], true);
    }
    case ValueHow::kIndexed: {
      const IndexedSize size = indexed_size(op.size);
      return values.add_memory(address + (place(size.index) << size.shift), size.bytes);
    }
    case ValueHow::kTextAt: {
      std::uint64_t text = 0;
      if (value == 0) return values.end(kValueNull, 0);
      return read_word(address, text, values) ? values.add_text(text, 0, false) : values.end(kValueUnreadable, 0);
    }
  }
  values.end(kValueUnreadable, 0);
}

/// False: there is no memory for them.
bool make_tables() {
  if (g_specs != nullptr) return true;
  constexpr std::uint64_t kSpecs = sizeof(ArenaValueSpec) * kMostValueSpecs;
  constexpr std::uint64_t kFunctions = sizeof(std::uint64_t) * kMostValueSpecs;
  constexpr std::uint64_t kNumbers = sizeof(std::uint16_t) * (std::uint64_t{kMaxFunctionId} + 1);
  const long got = sys::mmap(0, kSpecs + kFunctions + kNumbers, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  const auto at = static_cast<std::uintptr_t>(got);
  g_specs = reinterpret_cast<ArenaValueSpec*>(at);
  g_functions = reinterpret_cast<std::uint64_t*>(at + kSpecs);
  note_stacks_of_threads();
  store(g_numbers, reinterpret_cast<std::uint16_t*>(at + kSpecs + kFunctions));
  karst_noted_values.specs = at;
  karst_noted_values.functions = at + kSpecs;
  store(karst_noted_values.version, kValueTablesVersion);
  return true;
}

void find_numbers(ArenaValueSpec& spec) {
  const auto are_numbers_from = [&](std::uint32_t first, std::uint32_t count) {
    return count <= kMostValues - first && are_numbers(spec.ops + first, count);
  };
  spec.numbers = static_cast<std::uint8_t>(
      (are_numbers_from(0, spec.arguments) ? kNumberArguments : 0) |
      (spec.arguments <= kMostValues && are_numbers_from(spec.arguments, spec.returned) ? kNumbersReturned : 0));
}

/// Those that karst has added.
void take_specs() {
  const std::uint32_t count = load(karst_noted_values.count);
  for (; g_taken < count && g_taken < kMostValueSpecs; ++g_taken) {
    find_numbers(g_specs[g_taken]);
    if (const std::uint32_t id = function_at(g_functions[g_taken]).id; id != 0)
      store(g_numbers[id], static_cast<std::uint16_t>(g_taken + 1));
  }
}

}  // namespace

const ArenaValueSpec* value_spec(std::uint32_t function) {
  const std::uint16_t* numbers = load(g_numbers);
  if (numbers == nullptr || function > kMaxFunctionId || numbers[function] == 0) return nullptr;
  return &g_specs[numbers[function] - 1];
}

void take_over_values() {
  find_steady_memory();
  const ArenaValues* wanted = g_arena.values();
  if (wanted == nullptr || load(wanted->count) == 0 || !make_tables()) return;
  const std::uint32_t wanted_count = load(wanted->count);
  const std::uint32_t count = wanted_count < kMostValueSpecs ? wanted_count : kMostValueSpecs;
  copy(g_specs, wanted->specs, count * sizeof(ArenaValueSpec));
  for (std::uint32_t i = 0; i < count; ++i) find_numbers(g_specs[i]);
  for (std::uint32_t id = 1; id <= g_arena.function_count(); ++id) {
    const std::uint32_t number = value_spec_of(load(g_arena.functions()[id].flags));
    if (number == 0 || number > count) continue;
    g_numbers[id] = static_cast<std::uint16_t>(number);
    g_functions[number - 1] = function_of(id).address;
  }
  karst_noted_values.count = g_taken = count;
}

void apply_values() {
  // Whoever may write to the arena may ask for tables. They are empty.
  if (!g_arena.exists() || load(g_arena.control().values_wanted) == 0) return;
  const Patching lock;
  if (!make_tables()) return;
  const std::uint8_t changes = load(karst_noted_values.changes);
  if (changes == g_changes) return;
  g_changes = changes;
  take_specs();
  watch_sleds();
}

void prepare_values(bool no_system_calls) {
  prepare_read_memory(no_system_calls);
  add_task([](const Moment&) {
    apply_values();
    return kOnWake;
  });
}

bool are_numbers(const ValueOp* ops, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (ops[i].how != static_cast<std::uint8_t>(ValueHow::kRegister) &&
        ops[i].how != static_cast<std::uint8_t>(ValueHow::kConstant))
      return false;
  return true;
}

void record_numbers_note(NoteKind kind, std::uint32_t name, const ValueOp* ops, std::uint32_t count,
                         const std::uint64_t* saved) {
  static_assert(kMostValues * 9 + 1 <= NoteWords::kMostBytes && kMostProbeValues <= kMostValues);
  NoteWords words;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t value = number_of(ops[i], saved);
    const std::uint32_t bytes = value == 0 ? 0 : 8 - static_cast<std::uint32_t>(__builtin_clzll(value)) / 8;
    words.add(bytes, 1);
    if (bytes != 0) words.add(value, bytes);
  }
  words.add(kValuesEnd, 1);
  words.end();
  record_note_words(kind, name, words.payloads(), words.count());
}

void record_values_note(NoteKind kind, std::uint32_t name, const ValueOp* ops, std::uint32_t count,
                        const std::uint64_t* words, std::uintptr_t stack, std::uint32_t most_text) {
  Values values;
  values.start(stack, most_text);
  for (std::uint32_t i = 0; i < count; ++i) add(values, ops[i], words);
  values.finish();
  record_note(kind, name, values.bytes, values.used);
}

std::uint8_t read_value(const ArenaValueSpec& spec, std::uint32_t number, const std::uint64_t* words,
                        const unsigned char* vectors, std::uintptr_t stack, unsigned char* to) {
  Values values;
  values.stack = stack;
  values.vectors = vectors;
  values.most_text = spec.most_text < kMostValueBytes ? spec.most_text : kMostValueBytes;
  add(values, spec.ops[number], words);
  copy(to, values.bytes + 1, values.used - 1);
  return values.bytes[0];
}

namespace {

/// `alone`: the call's event is not to be recorded. True: it was.
bool record_values(const SavedRegisters* saved, bool alone) {
  find_stack(saved);
  const auto low_bits = static_cast<std::uint32_t>(saved->event_low_bits);
  const std::uint32_t id = low_bits & KARST_EVENT_ID_MASK;
  const bool returns = (low_bits & KARST_EVENT_EXIT_BIT) != 0;
  if (!may_record_notes() || id > g_arena.function_count()) return false;
  const ArenaValueSpec* spec = value_spec(id);
  if (spec == nullptr) return false;
  const std::uint32_t arguments = spec->arguments;
  const std::uint32_t first = returns ? arguments : 0;
  const std::uint32_t end = returns ? arguments + spec->returned : arguments;
  if (end > kMostValues || first == end) return false;
  const NoteKind kind = returns ? NoteKind::kReturned : NoteKind::kArguments;
  const ValueOp* ops = spec->ops + first;
  const std::uint32_t count = end - first;
  const std::uint64_t* words = words_of(*saved);
  const auto stack = reinterpret_cast<std::uintptr_t>(saved->stack);
  const bool numbers = (spec->numbers & (returns ? kNumbersReturned : kNumberArguments)) != 0;
  // Another hook in force does more than to record the event, or by another clock.
  if (alone || load(returns ? karst_plain_exit : karst_plain_enter) != karst_hook_trace) {
    if (numbers)
      record_numbers_note(kind, id, ops, count, words);
    else
      record_values_note(kind, id, ops, count, words, stack, spec->most_text);
    return false;
  }
  if (numbers) {
    ShortNote note;
    std::uint32_t i = 0;
    while (i < count && note.add(number_of(ops[i], words))) ++i;
    if (i == count && note.end(kValuesEnd))
      return record_short_note_and_call(kind, id, note.bytes(), note.size(), low_bits);
  }
  Values values;
  values.start(stack, spec->most_text);
  for (std::uint32_t i = 0; i < count; ++i) add(values, ops[i], words);
  values.finish();
  return record_note_and_call(kind, id, values.bytes, values.used, low_bits);
}

}  // namespace

extern "C" void karst_record_values(const SavedRegisters* saved) { record_values(saved, true); }
extern "C" std::uint32_t karst_record_values_and_call(const SavedRegisters* saved) {
  return record_values(saved, false) ? 1 : 0;
}

}  // namespace karst::runtime

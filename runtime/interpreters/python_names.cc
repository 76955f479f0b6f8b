// SPDX-License-Identifier: MIT
#include "runtime/interpreters/python_names.h"

#include "runtime/modules/named_functions.h"
#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

/// A reference that is given back.
class Held {
 public:
  Held(const Python& python, PyObject* object) : python_(python), object_(object) {}
  ~Held() {
    if (object_ != nullptr) python_.release(object_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  PyObject* get() const { return object_; }

 private:
  const Python& python_;
  PyObject* object_;
};

bool is_a(const Python& python, PyObject* object, void* type) {
  return object != nullptr &&
         (Python::type_of(object) == type || python.is_subtype(Python::type_of(object), type) != 0);
}

struct Name {
  char bytes[kLongestNamePart];
  std::uint32_t size = 0;

  void add(const char* data, std::uint32_t count) {
    const std::uint32_t room = kLongestNamePart - size;
    if (count > room) count = room;
    copy(bytes + size, data, count);
    size += count;
  }
};

/// Adds a text object's characters as UTF-8. A copy is encoded: the object would keep one of its own otherwise, and be
/// larger from then on.
void add_text(const Python& python, PyObject* text, Name& to) {
  if (!is_a(python, text, python.text_type)) return;
  const Held encoded(python, python.encoded(text, "utf-8", "backslashreplace"));
  char* data = nullptr;
  std::ptrdiff_t size = 0;
  if (encoded.get() == nullptr || python.bytes(encoded.get(), &data, &size) != 0 || size < 0) return;
  to.add(data, size > kLongestNamePart ? kLongestNamePart : static_cast<std::uint32_t>(size));
}

bool is_main(const Name& module) {
  constexpr char kMain[] = "__main__";
  if (module.size != sizeof kMain - 1) return false;
  for (std::uint32_t i = 0; i < module.size; ++i)
    if (module.bytes[i] != kMain[i]) return false;
  return true;
}

long number_of(const Python& python, PyObject* code, const char* attribute) {
  const Held number(python, python.attribute(code, attribute));
  return number.get() != nullptr ? python.number(number.get()) : 0;
}

Name name_of(const Python& python, PyObject* code, PyObject* globals) {
  constexpr std::uint32_t kQualifiedFrom = 11;
  Name name;
  if (is_a(python, globals, python.dict_type)) add_text(python, python.item(globals, "__name__"), name);
  if (is_main(name)) name.size = 0;
  if (name.size != 0) name.add(".", 1);
  const Held own(python, python.attribute(code, python.minor >= kQualifiedFrom ? "co_qualname" : "co_name"));
  add_text(python, own.get(), name);
  return name;
}

}  // namespace

PythonFunction enter_python_function(const Python& python, PyObject* code, PyObject* globals) {
  const Name name = name_of(python, code, globals);
  const Held path(python, python.attribute(code, "co_filename"));
  Name file;
  add_text(python, path.get(), file);
  constexpr long kGenerators = 0x20 | 0x80 | 0x200;  // CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
  const long line = number_of(python, code, "co_firstlineno");
  return {named_function(MadeUp::kPython, {name.bytes, name.size}, {file.bytes, file.size},
                         line > 0 ? static_cast<std::uint32_t>(line) : 0),
          (number_of(python, code, "co_flags") & kGenerators) != 0};
}

}  // namespace karst::runtime

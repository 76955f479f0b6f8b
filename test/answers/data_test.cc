// CSV and JSON of a relation that has a field of each type.
#include "answers/data.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "../engine/random_trace.h"

namespace karst::answers {
namespace {

struct Inner {
  std::int64_t number;
};

struct Row {
  std::uint64_t time = 5;
  std::optional<std::uint64_t> bytes;
  std::string text;
  FunctionRef function{0, 1};
  ThreadRef thread{nullptr};
  std::vector<Inner> inner;
};

const Relation& inner_relation() {
  static const Relation relation{
      "inner", "inner", "A row for each", {field<Inner>("number", Type::kNumber, "what it is", [](const Inner& i) {
        return i.number;
      })}};
  return relation;
}

const Relation& relation() {
  static const Relation relation{
      "things",
      "thing",
      "A row for each thing",
      {field<Row>("process", Type::kProcess, "whose it is", [](const Row&) { return ProcessRef{0}; }),
       field<Row>("begin", Type::kTime, "when", [](const Row& r) { return r.time; }),
       field_if_known<Row>("size", Type::kBytes, "how large", [](const Row& r) { return r.bytes; }),
       field<Row>("open", Type::kFlag, "whether it is", [](const Row& r) { return r.bytes.has_value(); }),
       field<Row>("id", Type::kId, "its number", [](const Row&) { return ~std::uint64_t{0}; }),
       field_if_known<Row>("thread", Type::kThread, "whose", [](const Row& r) { return r.thread; }),
       field<Row>("call", Type::kFunction, "which", [](const Row& r) { return r.function; }),
       row<Row>("first", "the first of what is in it", inner_relation(),
                [](const Row& r, const UseRow& use) {
                  if (!r.inner.empty()) use(&r.inner.front());
                }),
       list<Row>("numbers", Type::kNumber, "what is in it, by itself",
                 [](const Row& r, const auto& use) {
                   for (const Inner& one : r.inner) use(one.number);
                 }),
       rows<Row>("inner", "what is in it", inner_relation(),
                 [](const Row& r, const UseRow& use) {
                   for (const Inner& one : r.inner) use(&one);
                 }),
       field<Row>("text", Type::kText, "what it says", [](const Row& r) -> const std::string& { return r.text; })}};
  return relation;
}

class Data : public testing::Test {
 protected:
  Data() {
    values_.process(7, "app", {"f(int, char)"}).thread(9, "a \"b\"").call(1, 1000, 2000);
    index_ = test::index_of(values_);
  }
  const reader::Trace& trace() const { return index_->trace(); }
  std::string csv(const std::vector<Row>& rows) const {
    std::string text;
    {
      Output output = Output::to_string(text);
      Csv csv(trace(), relation(), output);
      for (const Row& row : rows) csv.row(&row);
      EXPECT_TRUE(output.finish());
    }
    return text;
  }
  std::string json(const Row& row) const {
    Json json;
    json.open('{');
    write_fields(json, trace(), relation(), &row);
    return json.close('}').take();
  }

  test::SampleTrace values_;
  std::unique_ptr<engine::TraceIndex> index_;
};

TEST_F(Data, EachTypeAsCsv) {
  Row known;
  known.bytes = 12;
  known.text = "two\nlines, \"quoted\"";
  known.thread = {&trace().processes()[0].threads[0]};
  Row unknown;
  unknown.function = {0, 0};
  EXPECT_EQ(csv({known, unknown}),
            "pid,begin_ns,size,open,id,tid,thread,call,text\n"
            "7,5,12,1,18446744073709551615,9,\"a \"\"b\"\"\",\"f(int, char)\",\"two\\nlines, \"\"quoted\"\"\"\n"
            "7,5,,0,18446744073709551615,,,\"\",\"\"\n");
}

TEST_F(Data, EachTypeAsJson) {
  Row known;
  known.bytes = 12;
  known.text = "two\nlines";
  known.thread = {&trace().processes()[0].threads[0]};
  known.inner = {{-3}, {4}};
  EXPECT_EQ(json(known),
            "{\"pid\":7,\"begin_ns\":5,\"size\":12,\"open\":true,\"id\":18446744073709551615,\"tid\":9,"
            "\"thread\":\"a \\\"b\\\"\",\"call\":\"f(int, char)\",\"first\":{\"number\":-3},\"numbers\":[-3,4],"
            "\"inner\":[{\"number\":-3},{\"number\":4}],\"text\":\"two\\nlines\"}");
}

TEST_F(Data, WhatIsNotKnownIsMissingInJson) {
  Row unknown;
  unknown.function = {0, 0};
  EXPECT_EQ(
      json(unknown),
      "{\"pid\":7,\"begin_ns\":5,\"open\":false,\"id\":18446744073709551615,\"call\":\"\",\"numbers\":[],\"inner\":[],"
      "\"text\":\"\"}");
}

}  // namespace
}  // namespace karst::answers

// CSV and JSON of a relation that has a field of each type.
#include "answers/data.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// One text in a row.
std::string csv_of(const std::vector<std::string>& texts) {
  static const Relation relation{
      "texts",
      "text",
      "A row for each",
      {field<std::string>("text", Type::kText, "it",
                          [](const std::string& text) -> const std::string& { return text; }),
       field<std::string>("size", Type::kCount, "of it", [](const std::string& text) { return text.size(); })}};
  std::string written;
  Output output = Output::to_string(written);
  Csv csv(nullptr, relation, output);
  for (const std::string& text : texts) csv.row(&text);
  EXPECT_TRUE(output.finish());
  return written;
}

// Whatever the text: a fast look finds what is plain, and the rest is written as csv_field() has it.
TEST(CsvTexts, EachByteAtEachPlace) {
  for (std::size_t size = 0; size <= 20; ++size)
    for (std::size_t at = 0; at < std::max<std::size_t>(size, 1); ++at)
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, 'a');
        if (size != 0) text[at] = static_cast<char>(byte);
        ASSERT_EQ(csv_of({text}), "text,size\n" + csv_field(text) + "," + std::to_string(size) + "\n")
            << size << " " << at << " " << byte;
      }
}

TEST(CsvTexts, OfAnyLength) {
  std::vector<std::string> texts;
  std::string wanted = "text,size\n";
  for (std::size_t size : {0, 1, 3900, 4000, 4090, 4094, 4095, 4096, 4097, 5000, 300'000})
    for (const char* more : {"", "\"", "\n"}) {
      texts.push_back(std::string(size, 'x') + more);
      wanted += csv_field(texts.back()) + "," + std::to_string(texts.back().size()) + "\n";
    }
  EXPECT_EQ(csv_of(texts), wanted);
}

}  // namespace
}  // namespace karst::answers

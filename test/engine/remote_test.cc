// A page whose data is on another machine: frames, and what a hostile machine at the other end can do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "base/descriptor.h"
#include "engine/remote/far_end.h"
#include "engine/remote/frames.h"
#include "engine/remote/remote_source.h"

namespace karst {
namespace {

using engine::FrameKind;
using engine::LinkLoss;
using namespace std::chrono_literals;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    from = Descriptor(ends[0]);
    to = Descriptor(ends[1]);
  }
  Descriptor from, to;
};

std::string frame(FrameKind kind, std::uint32_t question, const std::string& bytes = {}) {
  Pipe pipe;
  EXPECT_TRUE(engine::FrameWriter(pipe.to.get()).send(kind, question, bytes));
  pipe.to = Descriptor();
  std::string made(9 + bytes.size(), '\0');
  EXPECT_EQ(::read(pipe.from.get(), made.data(), made.size()), static_cast<ssize_t>(made.size()));
  return made;
}

TEST(Frames, CarryQuestionsAndHeads) {
  const engine::Parameters parameters = {{"begin", "1"}, {"sql", std::string("a\0b=&\n", 6)}, {"", ""}};
  const auto question = engine::parse_question(engine::question_bytes("tiles", parameters));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->path, "tiles");
  EXPECT_EQ(question->parameters, parameters);
  engine::Reply reply;
  reply.status = 404;
  reply.file_name = "a.karst";
  const auto head = engine::parse_head(engine::head_bytes(reply, true));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->reply.status, 404);
  EXPECT_EQ(head->reply.type, reply.type);
  EXPECT_EQ(head->reply.file_name, "a.karst");
  EXPECT_TRUE(head->goes_on);
}

TEST(Frames, EveryCutIsRefused) {
  const std::string question = engine::question_bytes("tiles", {{"begin", "1"}});
  for (std::size_t size = 0; size < question.size(); ++size)
    if (size != 9) {  // which is the path alone
      EXPECT_FALSE(engine::parse_question(question.substr(0, size))) << size;
    }
  const std::string head = engine::head_bytes({}, false);
  for (std::size_t size = 0; size < head.size(); ++size) EXPECT_FALSE(engine::parse_head(head.substr(0, size))) << size;
}

TEST(Frames, WhatABrowserCouldRunBecomesBytes) {
  for (const char* const type : {"text/html", "text/javascript", "application/json; charset=utf-8\r\nX: y", ""}) {
    engine::Reply reply;
    reply.type = type;
    EXPECT_EQ(engine::parse_head(engine::head_bytes(reply, false))->reply.type, "application/octet-stream");
  }
  engine::Reply reply;
  reply.status = 99;
  EXPECT_FALSE(engine::parse_head(engine::head_bytes(reply, false)));
  reply.status = 200;
  reply.file_name = "../../etc/passwd" + std::string(1000, 'x');
  const std::string name = engine::parse_head(engine::head_bytes(reply, false))->reply.file_name;
  EXPECT_EQ(name.find('/'), std::string::npos);
  EXPECT_LE(name.size(), 200U);
}

TEST(Frames, BodiesArePackedAndCutIntoFrames) {
  std::string body;
  for (int i = 0; i < 200'000; ++i) body += std::to_string(i % 100) + ",";
  Pipe pipe;
  std::thread writer([&] {
    engine::FrameWriter to(pipe.to.get());
    EXPECT_TRUE(to.send_body(7, body) && to.send_body(7, "short"));
    pipe.to = Descriptor();
  });
  engine::FrameReader reader(pipe.from.get());
  std::string got;
  std::size_t carried = 0;
  while (true) {
    const auto next = reader.next();
    ASSERT_TRUE(next.ok());
    if (!*next) break;
    EXPECT_EQ((*next)->question, 7U);
    carried += (*next)->bytes.size();
    got += (*next)->kind == FrameKind::kPacked ? engine::unpack_body((*next)->bytes).value_or("") : (*next)->bytes;
  }
  writer.join();
  EXPECT_EQ(got, body + "short");
  EXPECT_LT(carried, body.size() / 10);
}

TEST(Frames, UnpackOnlyWhatTheySay) {
  EXPECT_FALSE(engine::unpack_body(""));
  EXPECT_FALSE(engine::unpack_body(std::string("\xff\xff\xff\x7f", 4)));
  EXPECT_FALSE(engine::unpack_body(std::string("\x08\0\0\0 not zstd", 13)));
}

TEST(Frames, HelloIsFoundBehindWhatAShellPrints) {
  const auto hello_in = [](const std::string& text) {
    Pipe pipe;
    EXPECT_EQ(::write(pipe.to.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    pipe.to = Descriptor();
    return engine::FrameReader(pipe.from.get()).hello();
  };
  const auto hello = hello_in("Welcome!\n\nkarst-frames 1 2 1.2\n");
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->newest, 2U);
  EXPECT_EQ(hello->version, "1.2");
  EXPECT_FALSE(hello_in("Welcome!\n"));
  EXPECT_FALSE(hello_in("karst-frames 1 x 1.2\n"));
  EXPECT_FALSE(hello_in("karst-frames 1 99999999999 1.2\n"));
}

TEST(Frames, ProtocolsMayDifferByOne) {
  const engine::Hello own = engine::own_hello("1");
  EXPECT_TRUE(engine::understands(own));
  EXPECT_TRUE(engine::understands({own.oldest + 1, own.newest + 1, "newer"}));
  EXPECT_TRUE(engine::understands({own.newest - 1, own.newest - 1, "older"}));
  EXPECT_FALSE(engine::understands({own.oldest + 2, own.newest + 2, "much newer"}));
}

/// A program in ssh's place, which is a shell script.
class RemoteTest : public testing::Test {
 protected:
  RemoteTest() : directory_(std::filesystem::temp_directory_path() / ("karst-remote-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(directory_);
  }
  ~RemoteTest() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = directory_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  auto connect(const std::string& script) {
    engine::RemoteOptions options;
    options.way.file = "/bin/sh";
    options.way.words = {"sh", "-c", script};
    options.where = "host";
    options.target = "x";
    options.version = "1";
    options.stopping = [] { return false; };
    options.say = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      said_ += std::string(line) + "\n";
    };
    return engine::remote_source(std::move(options));
  }
  std::string why_not(const std::string& script) {
    auto source = connect(script);
    const auto* const loss = std::get_if<LinkLoss>(&source);
    return loss != nullptr ? loss->why : "connected";
  }
  /// A machine that says `frames` when it was asked its first question, and then nothing.
  std::unique_ptr<engine::Source> machine_that_says(const std::string& frames) {
    const std::string begin = engine::hello_line(engine::own_hello("1")) + frame(FrameKind::kReady, 0);
    const std::string script = "cat '" + file("begin", begin) + "'; head -c 40 > /dev/null; cat '" +
                               file("frames", frames) + "'; exec sleep 60";
    auto source = connect(script);
    EXPECT_EQ(source.index(), 0U);
    return source.index() == 0 ? std::get<0>(std::move(source)) : nullptr;
  }
  std::string said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }

  const std::filesystem::path directory_;
  std::mutex mutex_;
  std::string said_;
};

// As long as the questions of these tests are, 40 bytes are there with the target and the first of them.
const engine::Parameters kLong = {{"begin", "12345678901234567890123456789012345678901234567890"}};

TEST_F(RemoteTest, WhatIsNoKarstIsSaid) {
  EXPECT_EQ(why_not("exit 255"), "there is no connection to host");
  EXPECT_NE(why_not("exit 127").find("there is no karst on host"), std::string::npos);
  EXPECT_NE(why_not("exit 2").find("of a version"), std::string::npos);
  EXPECT_EQ(why_not("echo hello; exit 0"), "what answered on host is no karst");
  EXPECT_NE(why_not("yes").find("was ended"), std::string::npos) << "64 KiB are looked at";
  EXPECT_NE(why_not("echo karst-frames 7 9 2.0").find("karst 2.0 on host and karst 1 here"), std::string::npos);
  EXPECT_EQ(
      why_not("exec /nowhere/karst 2> /dev/null"),
      "there is no karst on host where programs that ssh starts are looked for: install it, or say where it is by "
      "--karst");
}

TEST_F(RemoteTest, ItsLinesCannotCommandTheTerminal) {
  EXPECT_EQ(why_not("printf 'a\\033]0;title\\007b\\r\\n' >&2; exit 255"), "there is no connection to host");
  EXPECT_EQ(said(), "host: a\\x1b]0;title\\x07b\n");
}

TEST_F(RemoteTest, AnAnswerIsBrought) {
  engine::Reply reply;
  const auto source = machine_that_says(frame(FrameKind::kHead, 1, engine::head_bytes(reply, false)) +
                                        frame(FrameKind::kBody, 1, "{\"a\":") + frame(FrameKind::kBody, 1, "1}") +
                                        frame(FrameKind::kEnd, 1));
  const engine::SourceReply answer = source->answer("trace", kLong);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "{\"a\":1}");
  EXPECT_EQ(source->failure(), "");
}

TEST_F(RemoteTest, WhatMakesNoSenseEndsTheConnection) {
  const std::string head = frame(FrameKind::kHead, 1, engine::head_bytes({}, false));
  const std::string of_size = std::string("\xff\xff\xff\xff\x07\x01\0\0\0", 9);
  for (const std::string& said :
       {std::string("garbage garbage garbage garbage"), of_size, frame(FrameKind::kBody, 1, "no head"), head + head,
        frame(FrameKind::kHead, 1, "short"), frame(FrameKind::kAsk, 1), frame(FrameKind::kEnd, 77),
        head + frame(FrameKind::kPacked, 1, "not packed at all")}) {
    const auto source = machine_that_says(said);
    EXPECT_EQ(source->answer("trace", kLong).status, 503);
    for (int i = 0; i < 200 && source->failure().empty(); ++i) std::this_thread::sleep_for(20ms);
    EXPECT_NE(source->failure().find("of karst's"), std::string::npos) << source->failure();
    EXPECT_EQ(source->answer("trace", {}).status, 503);
  }
}

TEST_F(RemoteTest, RandomFramesHarmNothing) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    std::string frames;
    for (int i = 0; i < 50; ++i)
      frames += frame(static_cast<FrameKind>(random() % 9 + 1), random() % 3, std::string(random() % 300, 'x'));
    for (int i = 0; i < 20; ++i) frames[random() % frames.size()] = static_cast<char>(random());
    const auto source = machine_that_says(frames);
    std::thread ends([&] {
      std::this_thread::sleep_for(50ms);
      source->stop();
    });
    static_cast<void>(source->answer("trace", kLong));
    ends.join();
  }
}

TEST_F(RemoteTest, AStreamThatFloodsEndsTheConnection) {
  std::string flood = frame(FrameKind::kHead, 1, engine::head_bytes({}, true));
  for (int i = 0; i < 80; ++i) flood += frame(FrameKind::kBody, 1, std::string(16 << 10, 'x'));
  const auto source = machine_that_says(flood);
  engine::SourceReply alive = source->answer("alive", kLong);
  for (int i = 0; i < 200 && source->failure().empty(); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_NE(source->failure(), "");
  std::string text;
  for (int i = 0; i < 20 && text.find("event: away") == text.npos; ++i) ASSERT_TRUE(alive.stream(text));
  EXPECT_NE(text.find("event: away"), std::string::npos);
  source->stop();
  EXPECT_FALSE(alive.stream(text));
}

/// Answers without a trace.
class EchoSource : public engine::Source {
 public:
  engine::SourceReply answer(std::string_view path, const engine::Parameters& parameters) override {
    engine::SourceReply reply;
    if (path == "alive") {
      reply.stream = [this, alive = std::shared_ptr<void>(nullptr, [this](void*) { ++ended; })](std::string& text) {
        std::this_thread::sleep_for(10ms);
        text += "event: progress\n\n";
        return !stopped;
      };
      return reply;
    }
    reply.body = std::string(path) + parameters.begin()->second;
    return reply;
  }
  void page_is_opened() override { ++opened; }
  void stop() override { stopped = true; }
  std::string failure() const override { return {}; }

  std::atomic<int> opened = 0, ended = 0;
  std::atomic<bool> stopped = false;
};

TEST(FarEnd, AnswersManyAtOnceAndEndsWithItsPipe) {
  EchoSource source;
  Pipe questions;
  Pipe answers;
  std::thread far([&] {
    EXPECT_TRUE(engine::answer_frames(source, questions.from.get(), answers.to.get()).ok());
    answers.to = Descriptor();
  });
  engine::FrameWriter to(questions.to.get());
  constexpr std::uint32_t kQuestions = 40;
  ASSERT_TRUE(to.send(FrameKind::kAsk, 1, engine::question_bytes("alive", {})));
  ASSERT_TRUE(to.send(FrameKind::kAsk, 2, engine::question_bytes("", {})));
  for (std::uint32_t i = 3; i < kQuestions; ++i)
    ASSERT_TRUE(to.send(FrameKind::kAsk, i, engine::question_bytes("n", {{"i", std::to_string(i)}})));
  engine::FrameReader reader(answers.from.get());
  EXPECT_EQ((*reader.next())->kind, FrameKind::kReady);
  std::uint32_t whole = 0;
  int events = 0;
  while (whole < kQuestions - 2 || events < 3) {
    const auto next = reader.next();
    ASSERT_TRUE(next.ok() && *next);
    if ((*next)->kind == FrameKind::kEnd) ++whole;
    if ((*next)->question == 1 && (*next)->kind == FrameKind::kBody) ++events;
    if ((*next)->question > 2 && (*next)->kind == FrameKind::kBody) {
      EXPECT_EQ((*next)->bytes, "n" + std::to_string((*next)->question));
    }
  }
  EXPECT_EQ(source.opened, 1);
  ASSERT_TRUE(to.send(FrameKind::kGiveUp, 1));
  while (true) {
    const auto next = reader.next();
    ASSERT_TRUE(next.ok() && *next);
    if ((*next)->kind == FrameKind::kEnd && (*next)->question == 1) break;
  }
  EXPECT_EQ(source.ended, 1);
  questions.to = Descriptor();
  far.join();
  EXPECT_TRUE(source.stopped);
}

TEST(FarEnd, WhatIsNoQuestionEndsIt) {
  for (const std::string& said :
       {std::string("garbage garbage"), frame(FrameKind::kBody, 1), frame(FrameKind::kAsk, 1, "x")}) {
    EchoSource source;
    Pipe questions;
    Pipe answers;
    ASSERT_EQ(::write(questions.to.get(), said.data(), said.size()), static_cast<ssize_t>(said.size()));
    EXPECT_FALSE(engine::answer_frames(source, questions.from.get(), answers.to.get()).ok());
  }
}

}  // namespace
}  // namespace karst

// Threads that make notes and calls at random, also in a signal handler and in a forked child, and log each of them in
// their order: the oracle. `random SEED ROUNDS DIRECTORY` writes DIRECTORY/TID for each thread, a line for each note:
// kind, value, innermost function.
#include <karst/karst.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#define NOTRACE KARST_NOTRACE __attribute__((noinline))

static std::string g_directory;

struct Log {
  std::string text;
  std::mt19937 random;
};
static thread_local Log* t_log;
static thread_local volatile sig_atomic_t t_handled;

NOTRACE static void log_note(const char* kind, const std::string& value, const char* in) {
  if (t_log == nullptr) return;
  t_log->text += std::string(kind) + "\t" + value + "\t" + in + "\n";
}

// What karst is to make of a log's arguments, snprintf makes as well.
NOTRACE __attribute__((format(printf, 2, 3))) static void log_printed(const char* in, const char* format, ...) {
  char text[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  log_note("log", text, in);
}

NOTRACE static void formatted(const char* in) {
  std::mt19937& random = t_log->random;
  const auto n = static_cast<int>(random());
  const uint64_t big = static_cast<uint64_t>(random()) << (random() % 33);
  const double x = static_cast<double>(static_cast<int>(random())) / 512;
  const std::string text(random() % 60, static_cast<char>('a' + random() % 26));
  switch (random() % 6) {
    case 0:
      karst_log("%d of %d", n, n % 100);
      return log_printed(in, "%d of %d", n, n % 100);
    case 1:
      karst_log("%s, %lx, %g", text.c_str(), big, x);
      return log_printed(in, "%s, %lx, %g", text.c_str(), big, x);
    case 2:
      karst_log_at(KARST_LOG_WARNING, "%*.*s|%c", n % 20, n % 7, text.c_str(), 'a' + n % 10);
      return log_printed(in, "%*.*s|%c", n % 20, n % 7, text.c_str(), 'a' + n % 10);
    case 3:
      karst_log_format("{} {:>8} {:.3f} {:#x}", text, n % 1000, x, big);
      return log_printed(in, "%s %8d %.3f %#lx", text.c_str(), n % 1000, x, big);
    case 4:
      karst_log("nothing but %%");
      return log_printed(in, "nothing but %%");
    default:
      karst_log_format_at(KARST_LOG_ERROR, "{2} {0} {1}", n, text.c_str(), n % 2 == 0);
      return log_printed(in, "%s %d %s", n % 2 == 0 ? "true" : "false", n, text.c_str());
  }
}

NOTRACE static void note(const char* in) {
  std::mt19937& random = t_log->random;
  switch (random() % 14) {
    case 13: {
      const uint64_t id = static_cast<uint64_t>(random()) << (random() % 33);
      const bool last = random() % 2 == 0;
      if (last)
        karst_flow_end(id);
      else
        karst_flow(id);
      log_note(last ? "flow ends" : "flow", std::to_string(id), in);
      break;
    }
    case 10: {
      const uint32_t color = static_cast<uint32_t>(random()) % 0xffffff + 1;
      karst_color(color);
      char text[10];
      snprintf(text, sizeof text, "#%06x", color);
      log_note("color", text, in);
      break;
    }
    case 11:
      karst_frame_begin("frame");
      log_note("frame begins", "", in);
      break;
    case 12: {
      const std::string text(random() % 20 + 1, static_cast<char>('A' + random() % 26));
      karst_message_color(text.c_str(), static_cast<uint32_t>(random()));
      log_note("message", text, in);
      break;
    }
    case 0: {
      const std::string text(random() % 90 + 1, static_cast<char>('a' + random() % 26));
      karst_message(text.c_str());
      log_note("message", text, in);
      break;
    }
    case 1: {
      const auto value =
          static_cast<int64_t>(random()) - static_cast<int64_t>(random()) * static_cast<int64_t>(random());
      KARST_VALUE("integer", value);
      log_note("integer", std::to_string(value), in);
      break;
    }
    case 2: {
      const double value = static_cast<double>(random() % 1000) / 8;
      KARST_VALUE("number", value);
      char text[40];
      snprintf(text, sizeof text, "%.17g", value);
      log_note("number", text, in);
      break;
    }
    case 3:
      KARST_MESSAGE("constant");
      log_note("message", "", in);
      break;
    case 4: {
      const uint64_t id = static_cast<uint64_t>(random()) << (random() % 33);
      karst_request(id);
      log_note("works on", std::to_string(id), in);
      break;
    }
    case 5: {
      const std::string text(random() % 12 + 1, 'T');
      karst_text(text.c_str());
      log_note("text", text, in);
      break;
    }
    case 6:
    case 7:
    case 8:
      formatted(in);
      break;
    default:
      KARST_FRAME("frame");
      log_note("frame", "", in);
      break;
  }
}

__attribute__((noinline)) static void leaf() { note("leaf()"); }

__attribute__((noinline)) static void branch(int depth) {
  note("branch(int)");
  for (unsigned i = t_log->random() % 3; i != 0; --i) {
    if (depth > 4) {
      leaf();
    } else if (t_log->random() % 2 != 0) {
      KARST_ZONE("zone");
      note("zone");
      branch(depth + 1);
    } else {
      branch(depth + 1);
    }
  }
  note("branch(int)");
}

// In the midst of any of our own instructions; its notes are not in the log, as they may come between a note and its
// line.
static void on_signal(int) {
  KARST_VALUE("in a handler", static_cast<int>(t_handled));
  karst_log("in a handler %d, %s", static_cast<int>(t_handled), "text");
  t_handled = t_handled + 1;
}

static void work(unsigned seed, int rounds) {
  Log log;
  log.random.seed(seed);
  t_log = &log;
  for (int i = 0; i < rounds; ++i) branch(0);
  t_log = nullptr;
  FILE* file = fopen((g_directory + "/" + std::to_string(syscall(SYS_gettid))).c_str(), "w");
  if (file == nullptr) _exit(9);
  fwrite(log.text.data(), 1, log.text.size(), file);
  fprintf(file, "handled\t%d\t\n", static_cast<int>(t_handled));
  fclose(file);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const unsigned seed = static_cast<unsigned>(atoi(argv[1]));
  const int rounds = atoi(argv[2]);
  g_directory = argv[3];
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 500}, {0, 500}};
  setitimer(ITIMER_PROF, &often, nullptr);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back(work, seed * 10 + i, rounds);
  for (std::thread& t : threads) t.join();
  const pid_t child = fork();
  if (child == 0) {
    work(seed * 10 + 7, rounds);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  work(seed * 10 + 8, rounds);
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  return 0;
}

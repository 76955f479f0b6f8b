// A server at a socket with a thread for each client, which counts what it asks of its system. Requests are lines:
//   work N    takes a lock, writes some bytes to a file, takes memory four times, of which two stay
//   count     how often, and bytes by file
//   hold, release, take    a lock that one client has while another waits for it
//   end
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <string>

pthread_mutex_t g_table = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER;

namespace {

std::string g_directory;
std::atomic<long> g_handled{0};
std::atomic<long> g_bytes[4];
void* volatile g_kept;

}  // namespace

__attribute__((noinline)) void write_file(int number) {
  char text[64] = {};
  const std::string path = g_directory + "/data-" + static_cast<char>('0' + number % 4);
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0644);
  const ssize_t wrote = pwrite(file, text, static_cast<size_t>(1 + number % 60), number % 1000);
  g_bytes[number % 4] += wrote;
  close(file);
}

__attribute__((noinline)) void take_memory(int number) {
  void* volatile first = malloc(static_cast<size_t>(100 + number % 50));
  void* second = calloc(2, 30);
  memset(first, 1, 100);
  g_kept = realloc(second, 70);
  free(first);
  g_kept = malloc(11);  // nobody gives it back
}

__attribute__((noinline)) void work(int number) {
  pthread_mutex_lock(&g_table);
  ++g_handled;
  pthread_mutex_unlock(&g_table);
  write_file(number);
  take_memory(number);
}

__attribute__((noinline)) void hold_it(FILE* from, FILE* to) {
  char line[64];
  pthread_mutex_lock(&g_held);
  fputs("held\n", to);
  fflush(to);
  if (fgets(line, sizeof line, from) == nullptr || strcmp(line, "release\n") != 0) abort();
  pthread_mutex_unlock(&g_held);
  fputs("released\n", to);
}

__attribute__((noinline)) void take_it(FILE* to) {
  pthread_mutex_lock(&g_held);
  pthread_mutex_unlock(&g_held);
  fputs("taken\n", to);
}

void* serve(void* given) {
  const int client = static_cast<int>(reinterpret_cast<long>(given));
  FILE* from = fdopen(client, "r");
  FILE* to = fdopen(dup(client), "w");
  fprintf(to, "%d\n", static_cast<int>(gettid()));
  fflush(to);
  char line[64];
  while (fgets(line, sizeof line, from) != nullptr) {
    if (strncmp(line, "work ", 5) == 0) {
      work(atoi(line + 5));
      fprintf(to, "done %s", line + 5);
    } else if (strcmp(line, "count\n") == 0) {
      fprintf(to, "%ld %ld %ld %ld %ld\n", g_handled.load(), g_bytes[0].load(), g_bytes[1].load(), g_bytes[2].load(),
              g_bytes[3].load());
    } else if (strcmp(line, "hold\n") == 0) {
      hold_it(from, to);
    } else if (strcmp(line, "take\n") == 0) {
      take_it(to);
    } else if (strcmp(line, "end\n") == 0) {
      exit(0);
    }
    fflush(to);
  }
  fclose(from);
  fclose(to);
  return nullptr;
}

int main(int, char** arguments) {
  g_directory = arguments[1];
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", arguments[2]);
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listening, 16) != 0)
    return 1;
  puts("ready");
  fflush(stdout);
  for (;;) {
    const int client = accept(listening, nullptr, nullptr);
    pthread_t thread;
    if (client < 0 || pthread_create(&thread, nullptr, serve, reinterpret_cast<void*>(static_cast<long>(client))) != 0)
      return 1;
    pthread_detach(thread);
  }
}

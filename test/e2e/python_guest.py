"""A Python program that logs its own truth: a random tree of calls, made from the seed in its arguments. The log is made
by sys.setprofile(), which sees the same frames from inside of the interpreter. Two lines for each frame of this file:
`+ name` as it begins or goes on, `- name` as it ends or waits.

Usage: python_guest.py SEED LOG
"""
import asyncio
import random
import sys
import threading

MOST = 4000  # calls


class Guest:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.left = MOST

    def go_on(self, depth):
        self.left -= 1
        return self.left > 0 and depth < 12

    def call(self, depth):
        for _ in range(self.random.randrange(1, 4)):
            if not self.go_on(depth):
                return
            self.random.choice((self.plain, self.raising, self.looping, self.sorted, self.nested, self.abandoned,
                                self.recursive, self.given_up))(depth + 1)

    def plain(self, depth):
        self.call(depth)

    def raising(self, depth):
        try:
            self.thrower(depth)
        except ValueError:
            self.call(depth)

    def thrower(self, depth):
        self.call(depth)
        self.deeper_thrower(depth)

    def deeper_thrower(self, depth):
        raise ValueError(depth)

    def numbers(self, depth):
        try:
            for i in range(self.random.randrange(4)):
                self.call(depth)
                yield i
        finally:
            self.leaf()

    def delegating(self, depth):
        yield from self.numbers(depth)

    def looping(self, depth):
        for _ in self.delegating(depth):
            self.leaf()

    def abandoned(self, depth):
        for _ in self.numbers(depth):
            break

    def given_up(self, depth):
        generator = self.numbers(depth)
        next(generator, None)
        try:
            generator.throw(KeyError(1))
        except KeyError:
            self.leaf()

    def sorted(self, depth):
        sorted([3, 1, 2], key=lambda value: self.key(value))

    def key(self, value):
        self.leaf()
        return value

    def nested(self, depth):
        def inner(n):
            return n if n == 0 else inner(n - 1)
        return inner(self.random.randrange(5)), [self.leaf() for _ in range(2)]

    def recursive(self, depth):
        if self.go_on(depth):
            self.recursive(depth + 1)

    def leaf(self):
        pass


async def waiting(guest, depth):
    await asyncio.sleep(0)
    guest.call(depth)
    await asyncio.sleep(0)


async def tasks(guest):
    done = [asyncio.create_task(waiting(guest, 9)) for _ in range(5)]
    done[4].cancel()
    await asyncio.gather(*done, return_exceptions=True)


def work(guest):
    guest.call(0)
    asyncio.run(tasks(guest))


def main():
    log = {}

    def profile(frame, event, _):
        if event in ("call", "return") and frame.f_code.co_filename == __file__:
            code = frame.f_code
            log.setdefault(threading.get_native_id(), []).append(
                ("+ " if event == "call" else "- ") + getattr(code, "co_qualname", code.co_name))

    seed = int(sys.argv[1])
    threads = [threading.Thread(target=work, args=(Guest(seed + i),)) for i in range(2)]
    threading.setprofile(profile)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threading.setprofile(None)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        for tid, lines in log.items():
            file.write(f"thread {tid}\n" + "".join(line + "\n" for line in lines))
    print(sum(map(len, log.values())))


main()

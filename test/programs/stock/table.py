"""The table that is printed, line by line."""
SLOW, LEAST = 1.2, 0.3  # a start is told of when it takes so many times the untraced time, and so many seconds more


class Table:
    def __init__(self):
        self.failed = False
        self.tried = 0

    def row(self, name, mode, what, plain=None, traced=None, first=None, more=()):
        seconds = "" if traced is None else f"{plain:8.2f} {traced:8.2f} {first:8.2f}"
        slow = "  SLOW" if traced and traced > SLOW * plain and traced - plain > LEAST else ""
        print(f"{name:12} {mode:15} {what:30} {seconds}{slow}", flush=True)
        for line in more:
            print(f"    {line}", flush=True)

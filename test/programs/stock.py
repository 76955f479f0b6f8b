#!/usr/bin/env python3
"""Programs and servers as Debian has them, traced and untraced: nothing may differ.

  KARST_BIN=build/bin python3 -B test/programs/stock.py [NAME...]     all, or those named; status 1 when anything differs

Each program does a small piece of work with a result that is the same each time: output, errors, status and the bytes of
the files it makes. Two untraced runs say what that is: where they differ from each other the part is not compared, and
the table says so. Then all modes of MODES, by turns with untraced runs. Before anything is called different, five more
untraced runs must not differ in it. Seconds are from the start to karst's end (of `exec`: the program's), medians of
three; `first` is a mode's first run, which may have to look at code that no run has seen.

Each server is started untraced and asked by clients that check every answer; meanwhile karst attaches, takes snapshots,
switches tracing off and on, and detaches, round after round. The longest gap is the longest time that one client waited
for an answer. At the end the same processes must be there. Then the server is started by karst run, and asked again.

What is not installed is skipped with its name. Nothing here is installed by script/setup. Needs root, as servers do.
"""
import argparse
import hashlib
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import wave
from pathlib import Path
from typing import NamedTuple

BIN = Path(os.environ.get("KARST_BIN", Path(__file__).resolve().parent.parent.parent / "build/bin")).resolve()
KARST = str(BIN / "karst")
ALL_KINDS = "locks,files,net,memory"
MODES = {
    "sched off": ["--sched", "off"],
    "run": [],
    "library": ["--library", "*"],
    "system": ["--system", ALL_KINDS],
    "exec": ["--exec"],
}
ATTACHED = {"attach": [], "attach library": ["--library", "*"], "attach system": ["--system", ALL_KINDS]}
SLOW, LEAST = 1.2, 0.3  # a start is told of when it takes so many times the untraced time, and so many seconds more


class Program(NamedTuple):
    """Words are started in an empty directory; {i} is that of INPUT. `ignore`: what is no part of the result."""
    name: str
    words: list
    stdin: bytes = b""
    ignore: bytes = b""
    seconds: int = 60


def shell(name, line, *more, **options):
    return Program(name, ["dash", "-c", line, *more], **options)


LUA = """local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end print(fib(24))
t = {} for i = 1, 20000 do t[i] = tostring(i * 7919 % 10007) end table.sort(t) print(#table.concat(t))
c = coroutine.wrap(function() for i = 1, 999 do coroutine.yield(i) end end) print(c() + c())
print(pcall(error, 'x'), (('x'):rep(1000):gsub('x', function(c) return c .. 'y' end)))"""
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
insert into t select i, printf('%x', i * 7919 % 10007), i / 7.0 from n; create index s on t(b);
select b, count(*), sum(c) from t group by b order by 2 desc, 1 limit 9; select count(*) from t x join t y on x.b = y.b;
vacuum; pragma integrity_check;"""
INPUT = {
    "count.php": """<?php function f($n) { return $n < 2 ? $n : f($n - 1) + f($n - 2); } echo f(22), "\\n";
$g = new Fiber(function () { for ($i = 0; $i < 999; $i++) Fiber::suspend($i); }); $s = $g->start();
while (!$g->isTerminated()) $s += $g->resume(); echo $s, md5(json_encode(range(1, 9999))), "\\n";
try { intdiv(1, 0); } catch (Error $e) { echo $e->getMessage(), "\\n"; } exit(7);""",
    "count.rb": """def f(n) = n < 2 ? n : f(n - 1) + f(n - 2)
puts f(20); e = Enumerator.new { |y| 999.times { |i| y << i } }; s = 0; 999.times { s += e.next }; puts s
puts 4.times.map { |i| Thread.new { (1..2000).map { |x| x * i % 7 }.sort.sum } }.map(&:value).inspect
begin; raise 'x'; rescue => x; puts x; end; puts `echo child`; r = fork { exit 5 }; Process.wait r; puts $?.exitstatus
puts catch(:done) { 9.times { |i| throw :done, i if i == 5 } }; GC.start; exit 3""",
    "count.js": """const c = require('crypto'), z = require('zlib'), f = n => n < 2 ? n : f(n - 1) + f(n - 2);
const {Worker, isMainThread, parentPort} = require('worker_threads');
if (isMainThread) { console.log(f(25), c.createHash('sha256').update('x'.repeat(1e6)).digest('hex'),
z.gzipSync('y'.repeat(1e5)).length);
  const ws = [1, 2, 3].map(() => new Promise(d => new Worker(__filename).on('message', d)));
  Promise.all(ws).then(r => { console.log(r, [...'zyx'].sort());
console.log(require('child_process').execSync('echo child') + '');
    process.exitCode = 4; }); } else parentPort.postMessage(f(18));""",
    "count.py": """import concurrent.futures, hashlib, json, multiprocessing, re, subprocess, sys, threading, zlib
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
print(f(20), hashlib.sha256(b'x' * 10 ** 6).hexdigest(), len(zlib.compress(b'y' * 10 ** 6)), re.sub('a+', 'b', 'xaay'))
with concurrent.futures.ThreadPoolExecutor(4) as p: print(sum(p.map(f, [12] * 20)))
with multiprocessing.Pool(2) as p: print(sum(p.map(f, [12] * 20)))
print(subprocess.run(['sh', '-c', 'echo child; exit 3'], capture_output=True), len(json.dumps(list(range(9999)))))
try: {}['x']
except KeyError as e: print(repr(e))
sys.exit(6)""",
    "count.pl": """my %h; $h{$_ * 7919 % 1009} .= $_ for 1 .. 20000;
print join(',', map { length $h{$_} } sort keys %h), "\\n";
eval { die "x\\n" }; print $@; my $p = fork; unless ($p) { exit 3 } waitpid $p, 0; print $? >> 8, "\\n", `echo child`;
my $t = 'abc' x 1000; $t =~ s/b(.)/$1$1/g; print length $t, "\\n"; exit 2""",
    "count.tcl": """proc f n { expr {$n < 2 ? $n : [f [expr {$n - 1}]] + [f [expr {$n - 2}]]} }
puts [f 18]; puts [exec echo child]; puts [llength [lsort [split [string repeat "b a " 9999]]]]; catch {error x} m;
puts $m; exit 4""",
    "count.scm": """(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (display (f 22)) (newline)
(display (call-with-current-continuation (lambda (k) (dynamic-wind (lambda () #f) (lambda () (k 42)) (lambda () (display
'out))))))
(display (catch 'x (lambda () (throw 'x 1)) (lambda (k . a) a))) (newline) (exit 3)""",
    "count.lisp": """(defun f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (format t "~a~%" (f 20))
(format t "~a ~a~%" (catch 'x (throw 'x 4)) (handler-case (error "bad") (error () 'caught)))
(format t "~a~%" (length (loop for i below 200000 collect (list i))))""",
    "count.pro": """f(0, 0). f(1, 1). f(N, R) :- N > 1, A is N - 1, B is N - 2, f(A, X), f(B, Y), R is X + Y.
:- initialization((f(18, R), writeln(R), catch(throw(x), E, writeln(E)), findall(X, between(1, 9999, X), L), sum_list(L,
S), writeln(S), halt(3))).
""",
    "count.ml": """exception X of int let rec f n = if n < 2 then n else f (n - 1) + f (n - 2)
let () = Printf.printf "%d\\n" (f 25); (try List.iter (fun i -> if i = 5 then raise (X i)) [1;
5] with X i -> Printf.printf "%d\\n" i);
  let h = Hashtbl.create 9 in for i = 1 to 99999 do Hashtbl.replace h (i mod 977) i done;
Printf.printf "%d\\n" (Hashtbl.length h); exit 3
""",
    "count.hs": """import qualified Data.Map as M
import Control.Exception
main = do print (M.foldr (+) 0 (M.fromList [(i * 7919 `mod` 1009, i) | i <- [1 .. 20000 :: Int]]))
          r <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
          print r
""",
    "Count.java": """import java.util.*; import java.util.concurrent.*; public class Count {
  static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
  public static void main(String[] a) throws Exception { System.out.println(f(27)); var p = Executors.newFixedThreadPool(3);
    var l = new ArrayList<Future<Integer>>(); for (int i = 0; i < 9; i++) l.add(p.submit(() -> f(20))); int s = 0;
    for (var x : l) s += x.get(); System.out.println(s); p.shutdown(); String n = null;
    try { n.length(); } catch (NullPointerException e) { System.out.println("null"); } try { deep(0);
} catch (StackOverflowError e) {
      System.out.println("deep"); } System.gc(); System.exit(9); } static int deep(int n) { return deep(n + 1) + 1; } }""",
    "count.m": """a = magic(60); printf("%.6f %d\\n", det(a(1:3, 1:3) + eye(3)), rank(a)); b = a * a';
printf("%.3f\\n", trace(b)); try; error("x"); catch e; disp(e.message); end; x = cellfun(@(v) v * 2, {1, 2, 3}); disp(x);
s = 0; for i = 1:3000; s += mod(i * 7919, 13); end; disp(s); exit(3);""",
    "count.R": """m <- matrix(1:2500 %% 17 + diag(50), 50); cat(round(det(solve(m %*% t(m) + diag(50))) * 1e6), "\\n");
set.seed(1)
x <- rnorm(2000); print(summary(lm(x ~ seq_along(x)))$df);
cat(tryCatch(stop("bad"), error = function(e) conditionMessage(e)), "\\n")
pdf(NULL); plot(x); invisible(dev.off()); svg <- sapply(split(x, 1:2000 %% 10), mean); cat(round(svg, 4), "\\n");
quit(status = 4)""",
    "count.el": """(defun f (n) (if (< n 2) n (+ (f (1- n)) (f (- n 2))))) (princ (f 18)) (princ (catch 'x (throw 'x 5)))
(with-temp-buffer (dotimes (i 2000) (insert (format "%d\\n" (% (* i 7919) 1009)))) (sort-numeric-fields 1 (point-min)
(point-max))
  (princ (md5 (buffer-string)))) (princ (condition-case e (error "bad") (error (cadr e)))) (kill-emacs 3)""",
    "count.c": """#include <stdio.h>
#define A(n) int a##n(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * n % 7; return s; }
A(1) A(2) A(3) A(4) A(5) A(6) A(7) A(8) A(9) int main(void) { printf("%d\\n", a1(9) + a2(8) + a9(7)); return 5; }
""",
    "count.cc": """#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <vector>
int main() { std::map<int, std::vector<int>> m; for (int i = 0; i < 999; i++) m[i % 9].push_back(i);
std::cout << m.size() << '\\n';
  try { throw 3; } catch (int i) { return i; } }
""",
    "count.f90": "program p\n integer :: i\n real(8) :: a(99)\n a = [(i * 1d0, i = 1, 99)]\n print '(f10.3)', "
    "sum(sqrt(a))\nend program\n",
    "count.rs": "fn main() { let v: Vec<u64> = (1..99).map(|i| i * i).collect(); println!(\"{}\", "
    "v.iter().sum::<u64>()); }\n",
    "article.md": "# Title\n\n" + "".join(f"## Part {i}\n\nSome *words* and `code`[^{i}], $x^{i}$.\n\n[^{i}]: "
    f"Note.\n\n| a | b |\n|---|---|\n"
                                    f"| {i} | 2 |\n\n" for i in range(30)),
    "page.tex": "".join(f"\\line{{{i} words \\hfil $\\sum_{{i=1}}^{{{i}}} x_i$}}\n" for i in range(300)) + "\\bye\n",
    "page.ps": "%!\n/Helvetica findfont 20 scalefont setfont 1 1 30 { dup 20 mul 50 exch moveto (line) show 10 string "
    "cvs show } for\n"
               "0 1 99 { dup 100 div setgray 5 mul 300 5 5 rectfill } for showpage\n",
    "graph.dot": "digraph g {" + "".join(f"n{i} -> n{i * 7 % 60}; n{i} -> n{i // 2};" for i in range(60)) + "}",
    "plot.gp": "set terminal svg; set output 'plot.svg'; set samples 500; plot sin(x) * x, x ** 2 / 10; print sum "
    "[i=1:99] i ** 2",
    "text.xml": "<list>" + "".join(f"<item n='{i * 7919 % 1009}'>text {i}</item>" for i in range(3000)) + "</list>",
    "text.xsl": "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:template "
    "match='/'><out>"
                "<xsl:for-each select='//item'><xsl:sort select='@n' data-type='number'/><i><xsl:value-of "
                "select='.'/></i></xsl:for-each>"
                "</out></xsl:template></xsl:stylesheet>",
    "scene.pov": "camera { location <0, 2, -5> look_at 0 } light_source { <5, 9, -9> rgb 1 } plane { y, -1 pigment { "
    "checker rgb 1 rgb 0 } }\n"
                 "sphere { 0, 1 pigment { rgb <1, .2, .2> } finish { reflection .4 phong 1 } }\n",
    "page.html": "<html><body style='margin:0;background:#fff'><h1 id=t>x</h1><script>let f = n => n < 2 ? n : f(n - 1) "
    "+ f(n - 2);"
                 "document.getElementById('t').textContent = 'sum ' + f(20) + ' ' + [3, 1, 2].sort();</script><p>Some "
                 "text</p></body></html>",
    "picture.svg": "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='100'><rect width='90' height='60' "
    "fill='#c33'/>"
                   "<circle cx='120' cy='50' r='40' fill='none' stroke='#36c' stroke-width='7'/><text x='9' "
                   "y='90'>words</text></svg>",
    "picture.scm": """(let* ((i (car (gimp-file-load RUN-NONINTERACTIVE "IN/page.ppm" "page.ppm"))) (d (car
(gimp-image-get-active-layer i))))
(plug-in-gauss RUN-NONINTERACTIVE i d 9 9 0) (gimp-image-scale i 100 80) (gimp-image-rotate i 0)
(file-ppm-save RUN-NONINTERACTIVE i (car (gimp-image-get-active-layer i)) "out.ppm" "out.ppm" 1))""",
    "logic.smt": "(declare-const a Int)(declare-const b Int)(assert (and (> a 3) (< (* a b) 99) (= (+ a b) 20) (> b "
    "2)))(check-sat)"
                 "(get-model)(exit)",
    "model.mod": "set I := 1..30; var x{I} >= 0, integer; maximize z: sum{i in I} (i mod 7 + 1) * x[i];\n"
                 "s.t. c{k in 1..9}: sum{i in I} (i * k mod 5 + 1) * x[i] <= 100 + k; solve; printf '%g\\n', z; end;\n",
    "people.sql": SQL,
}


def make_input(home):
    for name, text in INPUT.items():
        (home / name).write_text(text.replace("IN/", f"{home}/"))
    (home / "text.txt").write_text("".join(f"{i} {i * 7919 % 10007:x} some words of line {i % 97}\n" for i in range(30000)))
    (home / "page.ppm").write_bytes(b"P6 320 256 255\n" + bytes(v for y in range(256) for x in range(320)
                                                              for v in (x * 255 // 320, y, (x ^ y) & 255)))
    clauses = [[(1 if i * p % 3 else -1) * (1 + i * p % 120) for p in (7, 31, 101)] for i in range(1, 400)]
    (home / "clauses.cnf").write_text("p cnf 120 399\n" + "".join(" ".join(map(str, c)) + " 0\n" for c in clauses))
    with wave.open(str(home / "tone.wav"), "wb") as out:
        out.setparams((1, 2, 44100, 0, "NONE", ""))
        out.writeframes(b"".join(struct.pack("<h", (i * i // 50) % 20000 - 10000) for i in range(88200)))
    # Prints 'boot' 2000 times by the debug console, then leaves by the debug port with (0x31 << 1) + 1.
    code = bytes.fromhex("fa31c08ed8b9d007be207cac84c07406bae900eeebf5e2f0b031baf400eeebfe").ljust(32, b"\0") + b"boot\n\0"
    (home / "boot.img").write_bytes(code.ljust(510, b"\0") + b"\x55\xaa")
    tree = home / "tree"
    tree.mkdir()
    for i in range(8):
        (tree / f"part{i}.c").write_text(INPUT["count.c"].replace("main", f"part{i}").replace("a##n", f"a##n##_{i}")
                                         .replace("a1(", f"a1_{i}(").replace("a2(", f"a2_{i}(").replace("a9(", f"a9_{i}("))
    (tree / "main.c").write_text("int part3(void);\nint main(void) { return part3(); }\n")
    (tree / "Makefile").write_text("O := $(patsubst %.c,%.o,$(sort $(notdir $(wildcard ../input/tree/*.c))))\n"
                                   "all: $(O)\n\t$(CC) $(O) -o all\n%.o: ../input/tree/%.c\n\t@$(CC) -O1 -c $< -o $@\n")


GIT = ("export GIT_AUTHOR_DATE='1 Jan 2020 0:00 +0' GIT_COMMITTER_DATE='1 Jan 2020 0:00 +0' GIT_AUTHOR_NAME=a "
    "GIT_AUTHOR_EMAIL=a@b "
       "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; git init -qb m . && cp {i}/*.c {i}/*.py . && git add . && git "
       "commit -qm one && "
       "echo x >> count.c && git commit -qam two && git log -p --stat | cat && git -c pack.threads=1 gc -q && git fsck && "
       "git grep -n main && git diff HEAD~ | git apply -R && git status --short; rm -rf .git")
PROGRAMS = [
    Program("lua5.4", ["lua5.4", "-e", LUA]),
    Program("luajit", ["luajit", "-e", LUA]),
    Program("guile", ["guile", "--no-auto-compile", "{i}/count.scm"]),
    Program("ruby", ["ruby", "{i}/count.rb"]),
    Program("php", ["php", "{i}/count.php"]),
    Program("node", ["node", "{i}/count.js"]),
    Program("perl", ["perl", "{i}/count.pl"]),
    Program("python3", ["/usr/bin/python3", "{i}/count.py"]),
    Program("tclsh", ["tclsh", "{i}/count.tcl"]),
    Program("sbcl", ["sbcl", "--script", "{i}/count.lisp"]),
    Program("clisp", ["clisp", "-q", "{i}/count.lisp"]),
    Program("swipl", ["swipl", "-q", "{i}/count.pro"]),
    Program("ocaml", ["ocaml", "{i}/count.ml"]),
    shell("ocamlopt", "cp {i}/count.ml . && ocamlopt count.ml -o count && ./count"),
    shell("ghc", "cp {i}/count.hs . && ghc -v0 -O1 count.hs && ./count; rm -f count", seconds=120),
    Program("runghc", ["runghc", "{i}/count.hs"]),
    Program("java", ["java", "-Xshare:auto", "-cp", "{i}", "Count"]),
    Program("mono", ["mono", "--version"]),
    Program("octave", ["octave-cli", "--norc", "-q", "{i}/count.m"]),
    Program("R", ["R", "-s", "-f", "{i}/count.R"]),
    Program("maxima", ["maxima", "--very-quiet", "--batch-string",
        "factor(x^12-1); integrate(1/(x^3+1),x); solve(x^2-3*x+2,x); quit();"]),
    Program("gp", ["gp", "-q", "-f"], stdin=b"print(factor(2^101-1)); print(bnfinit(x^3-7).no); "
        b"print(sum(i=1,9999,i%7))\n\\q\n"),
    Program("gap", ["gap", "-q", "-A"], stdin=b"Size(SymmetricGroup(20)); Order((1,2,3)(4,5)); Filtered([1..300], "
        b"IsPrime); quit;\n"),
    Program("glpsol", ["glpsol", "--math", "{i}/model.mod", "-o", "out.txt"],
        ignore=rb"Time used.*|Memory used.*|.*?secs.*"),
    Program("minisat", ["minisat", "-verb=0", "{i}/clauses.cnf", "model"], ignore=rb".*(CPU time|Memory used|/sec).*"),
    Program("z3", ["z3", "{i}/logic.smt"]),
    Program("gnugo", ["gnugo", "--mode", "gtp", "--seed", "1", "--level", "3"],
        stdin=b"genmove b\ngenmove w\ngenmove b\nshowboard\nquit\n"),
    shell("stockfish", "stockfish bench 16 1 8 default depth 2>&1 | grep -E 'Nodes searched|bestmove'"),
    Program("ffmpeg", ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc=duration=2:size=320x240",
        "-threads", "2", "-flags",
                       "+bitexact", "-fflags", "+bitexact", "-c:v", "libx264", "out.mp4"]),
    Program("convert", ["convert", "{i}/page.ppm", "-resize", "200x", "-blur", "0x3", "-rotate", "9", "-quality", "80",
        "out.jpg"]),
    Program("gs", ["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r100", "-sOutputFile=out.png",
        "{i}/page.ps"]),
    shell("poppler", "pdftotext {i}/page.pdf - ; pdftoppm -png {i}/page.pdf page; pdfinfo {i}/page.pdf | grep Pages"),
    Program("dot", ["dot", "-Tsvg", "-oout.svg", "{i}/graph.dot"]),
    Program("dot-png", ["dot", "-Tpng", "-oout.png", "{i}/graph.dot"]),
    Program("tesseract", ["tesseract", "{i}/words.png", "-", "--psm", "6"]),
    Program("gnuplot", ["gnuplot", "{i}/plot.gp"]),
    Program("pdftex", ["pdftex", "-interaction=batchmode", "{i}/page.tex"]),
    Program("xsltproc", ["xsltproc", "{i}/text.xsl", "{i}/text.xml"]),
    Program("povray", ["povray", "+I{i}/scene.pov", "+Oout.ppm", "+FP", "+W160", "+H120", "-D", "-GA", "+WT2"],
        ignore=rb"(?s).*"),
    Program("sox", ["sox", "-D", "{i}/tone.wav", "out.flac", "lowpass", "3000", "rate", "22050"]),
    shell("optipng", "cp {i}/words.png out.png && optipng -quiet -o3 out.png"),
    shell("7z", "7z a -mmt2 -mtm- out.7z {i}/text.txt >/dev/null && 7z t out.7z | grep -E 'Ok|Size'"),
    shell("zstd", "zstd -qT2 -15 {i}/text.txt -o out.zst && zstd -qdc out.zst | md5sum"),
    shell("xz", "xz -T2 -c {i}/text.txt > out.xz && xz -dc out.xz | md5sum"),
    shell("pigz", "pigz -nc -p3 {i}/text.txt | tee out.gz | gzip -dc | md5sum"),
    shell("git", GIT),
    shell("rsync", "rsync -a {i}/tree/ copy/ && rsync -avn {i}/tree/ copy/ | head -1; rm -rf copy/.??*"),
    Program("vim.tiny", ["vim.tiny", "-nNu", "NONE", "-es", "+%s/words/WORDS/g", "+g/1f/d", "+sort n", "+w! out.txt",
        "+q!", "{i}/text.txt"]),
    Program("emacs", ["emacs", "-Q", "--batch", "-l", "{i}/count.el"]),
    Program("sqlite3", ["sqlite3", "out.db"], stdin=SQL.encode()),
    Program("gawk", ["gawk", "{n[$2 % 7] += $1; gsub(/o/, \"0\"); l += length($0)} END {for (k = 0; k < 7; k++) print "
        "k, n[k]; print l; exit 4}",
                     "{i}/text.txt"]),
    Program("bc", ["bc", "-lq"], stdin=b"scale=300; 4*a(1); 2^2000 % 7919\n"),
    Program("jq", ["jq", "-n", "[range(30000)] | map(. * 7919 % 1009) | group_by(.) | length"]),
    Program("xmllint", ["xmllint", "--xpath", "sum(//item/@n)", "{i}/text.xml"]),
    Program("erl", ["erl", "-noshell", "-eval", "F = fun G(N) when N < 2 -> N; G(N) -> G(N-1) + G(N-2) end, S = self(), "
        "[spawn(fun() -> S ! F(18) end) "
                    "|| _ <- lists:seq(1, 20)], io:format(\"~p~n\", [lists:sum([receive X -> X end || _ <- lists:seq(1, "
                    "20)])]), "
                    "io:format(\"~p~n\", [catch error(bad)]), halt(3)."], ignore=rb"(?s)\[\{erl_eval.*"),
    Program("pandoc", ["pandoc", "{i}/article.md", "-s", "--mathml", "-o", "out.html"]),
    Program("gcc", ["gcc", "-O2", "-g", "{i}/count.c", "-o", "out"]),
    Program("g++", ["g++", "-O2", "-c", "{i}/count.cc", "-o", "out.o"]),
    Program("clang", ["clang", "-O2", "-c", "{i}/count.c", "-o", "out.o"]),
    Program("gfortran", ["gfortran", "-O2", "{i}/count.f90", "-o", "out"]),
    shell("make", "make -sj3 -f {i}/tree/Makefile && ./all; echo $?"),
    Program("gdb", ["gdb", "-nx", "--batch", "-ex", "break main", "-ex", "run", "-ex", "bt", "-ex", "continue", "{i}/count"],
        ignore=rb"process \d+"),
    Program("strace", ["strace", "-fe", "trace=exit_group", "-e", "signal=none", "dash", "-c", "{i}/count; exit 3"],
        ignore=rb"\[pid +\d+\] |.*attached.*"),
    Program("valgrind", ["valgrind", "-q", "--tool=memcheck", "{i}/count"]),
    Program("qemu", ["qemu-system-x86_64", "-display", "none", "-debugcon", "stdio", "-monitor", "none", "-net", "none",
        "-accel", "tcg", "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
                     "-drive", "format=raw,snapshot=on,file={i}/boot.img"]),
    Program("openssl", ["openssl", "enc", "-aes-256-cbc", "-K", "0" * 64, "-iv", "0" * 32, "-in", "{i}/text.txt", "-out",
        "out"]),
    Program("busybox", ["busybox", "sh", "-c", "busybox md5sum {i}/text.txt; busybox sed s/words/x/ {i}/text.txt | "
        "busybox sort | busybox wc; exit 5"]),
    shell("pipes", "for i in $(seq 150); do echo $i | sed s/1/2/ | cat; done | sort | md5sum; exit 3"),
    Program("bash", ["bash", "-c", "f() { echo ${1^^}; return 3; }; for i in {1..300}; do a[i]=$(f x$i); done; echo "
        "${#a[@]}; trap 'echo end' EXIT; "
                     "sleep 9 & sleep .1; kill $!; wait $!; echo $?; kill -TERM $$"]),
    Program("zsh", ["zsh", "-fc", "typeset -A h; for i in {1..3000}; do h[$i]=$((i * 7919 % 1009)); done; print "
        "${(on)h[1,9]} ${#h}; exit 4"]),
    Program("rustc", ["rustc", "-O", "--emit=obj", "{i}/count.rs", "-o", "out.o"]),
    Program("gimp", ["gimp-console-2.10", "-idf", "-b", "(load \"{i}/picture.scm\")", "-b", "(gimp-quit 1)"], seconds=120),
    Program("inkscape", ["inkscape", "--export-type=png", "--export-filename=out.png", "{i}/picture.svg"],
        ignore=rb"\(inkscape:.*?WARNING.*", seconds=120),
    shell("firefox", "mkdir profile; firefox --headless --no-remote --profile $PWD/profile --window-size=400,300 "
        "--screenshot $PWD/out.png file://{i}/page.html; "
                     "s=$?; rm -rf profile; exit $s", ignore=rb"(?s).*", seconds=120),
    Program("chromium", ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
        "--user-data-dir=/proc/self/cwd/../browser", "--dump-dom",
                         "file://{i}/page.html"], ignore=rb"\[\d+:\d+:.*", seconds=60),
]


class Result(NamedTuple):
    status: int
    out: bytes
    err: bytes
    files: dict
    seconds: float
    said: list  # karst's lines


class Bench:
    def __init__(self, home):
        self.home = home
        self.input = home / "input"
        self.directory = home / "run"
        self.input.mkdir(parents=True)
        home.chmod(0o755)
        (home / "tmp").mkdir()
        make_input(self.input)
        self.environment = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games", "HOME": str(home),
            "LANG": "C.UTF-8",
                            "TMPDIR": str(home / "tmp"), "XDG_CACHE_HOME": str(home / "cache"), "TERM": "dumb",
                            "SOURCE_DATE_EPOCH": "1",
                            "OMP_NUM_THREADS": "2", "USER": "root", "FORCE_SOURCE_DATE": "1"}
        for line in ("gcc -g count.c -o count", "javac Count.java", "ps2pdf page.ps page.pdf",
                     "convert -size 500x120 xc:white -pointsize 40 -fill black -annotate +20+70 'Every call, every "
                     "return' words.png"):
            subprocess.run(line, shell=True, cwd=self.input, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)

    def words(self, program):
        return [word.replace("{i}", str(self.input)) for word in program.words]

    def missing(self, program):
        path = self.environment["PATH"]
        if program.words[0] != "dash":
            return None if shutil.which(program.words[0], path=path) else program.words[0]
        tool = {"pipes": "dash", "poppler": "pdftotext"}.get(program.name, program.name)
        return None if shutil.which(tool, path=path) else tool

    def run(self, program, before=()):
        """One run in an empty directory. The time is until the program's end; what karst does after that is waited for."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
            given.write(program.stdin)
            given.seek(0)
            begin = time.monotonic()
            running = subprocess.Popen([*before, *self.words(program)], cwd=self.directory, env=self.environment,
                stdin=given,
                                       stdout=out, stderr=subprocess.PIPE, start_new_session=True)
            late = threading.Timer(program.seconds, lambda: os.killpg(running.pid, signal.SIGKILL))
            late.start()
            errors = []
            reader = threading.Thread(target=lambda: errors.append(running.stderr.read()), daemon=True)
            reader.start()
            status = running.wait()
            seconds = time.monotonic() - begin
            late.cancel()
            reader.join(30)
            out.seek(0)
            written = out.read()
        err, said = [], []
        for line in b"".join(errors).splitlines(keepends=True):
            if line.startswith(b"karst: "):
                said.append(line.decode(errors="replace").strip())
            else:
                err.append(line)
        files = {}
        for path in sorted(self.directory.rglob("*")):
            if path.is_file() and not path.is_symlink():
                files[str(path.relative_to(self.directory))] = hashlib.sha256(path.read_bytes()).hexdigest()

        def part(data):
            return re.sub(program.ignore, b"", data) if program.ignore else data
        return Result(status if not errors or seconds < program.seconds else "none in time", part(written),
            part(b"".join(err)), files,
                      seconds, said)


def differences(one, other):
    """Names of what differs."""
    found = {name: (getattr(one, name), getattr(other, name)) for name in ("status", "out", "err")
             if getattr(one, name) != getattr(other, name)}
    for name in sorted({*one.files, *other.files}):
        if one.files.get(name) != other.files.get(name):
            found["file " + name] = (one.files.get(name), other.files.get(name))
    return found


def around(one, other):
    """Where two texts differ first."""
    if not isinstance(one, bytes):
        return f"{one!r} -> {other!r}"
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"at {at}: {one[max(0, at - 30):at + 90]!r} -> {other[max(0, at - 30):at + 90]!r}"


# What karst always says.
USUAL = re.compile(r"functions? patched as it was loaded|next: karst slow|are shown as|have no file and line|^karst: so w|"
                   r"source files that are not here")


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


def examine(bench, program, table, rounds):
    missing = bench.missing(program)
    if missing:
        table.row(program.name, "-", f"skipped, there is no {missing}")
        return
    bench.run(program)
    plain = bench.run(program)
    again = bench.run(program)
    unsteady = differences(plain, again)
    if plain.status < 0 and plain.status != -signal.SIGTERM:
        unsteady["status"] = (plain.status, plain.status)
    note = "" if not unsteady else f"not compared: {', '.join(unsteady)}"
    table.row(program.name, "untraced", f"status {plain.status}, {len(plain.out)} bytes, {len(plain.files)} files",
        more=[note] if note else [])
    seconds = {mode: [] for mode in MODES}
    untraced, firsts = [plain.seconds, again.seconds], {}
    wrong, said = {mode: {} for mode in MODES}, {mode: {} for mode in MODES}
    for turn in range(rounds + 1):
        for mode, options in MODES.items():
            trace = bench.home / "trace.karst"
            traced = bench.run(program, [KARST, "run", *options, "-o", str(trace), "--"])
            status = traced.status
            if plain.status < 0 and status == 128 - plain.status:
                traced = traced._replace(status=plain.status)
            for name, pair in differences(plain, traced).items():
                if name not in unsteady and not (name.startswith("file ") and not traced.files.get(name[5:]) and name in
                    unsteady):
                    wrong[mode].setdefault(name, around(*pair))
            if not trace.exists():
                wrong[mode].setdefault("no trace", " ".join(traced.said))
            else:
                trace.unlink()
            for line in traced.said:
                if not USUAL.search(line):
                    said[mode].setdefault(re.sub(r"[\d.]+", "N", line), line)
            if turn == 0:
                firsts[mode] = traced.seconds
            else:
                seconds[mode].append(traced.seconds)
        if turn:
            untraced.append(bench.run(program).seconds)
    if any(wrong.values()):  # two runs may be alike by chance
        by_itself = {}
        for _ in range(5):
            by_itself.update(differences(plain, bench.run(program)))
        for found in wrong.values():
            for name in by_itself:
                found.pop(name, None)
        if by_itself:
            print(f"    differs untraced, too, and is not compared: {', '.join(by_itself)}")
    for mode in MODES:
        table.failed = table.failed or bool(wrong[mode])
        what = "same" if not wrong[mode] else "DIFFERS: " + ", ".join(wrong[mode])
        table.row(program.name, mode, what, statistics.median(untraced), statistics.median(seconds[mode]), firsts[mode],
                  [f"{name}: {text}" for name, text in wrong[mode].items()] + list(said[mode].values()))
    table.tried += 1


# Servers: each client has a class that connects and asks one question after the other; a wrong answer raises.


class Stream:
    def __init__(self, port, host="127.0.0.1"):
        end = time.monotonic() + 40
        while True:
            try:
                self.socket = socket.create_connection((host, port), timeout=40)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def expect(self, wanted):
        got = self.file.read(len(wanted))
        if got != wanted:
            raise AssertionError(f"got {got!r} for {wanted!r}")

    def close(self):
        self.file.close()
        self.socket.close()


class Redis(Stream):
    def ask(self, n):
        key = b"%d.%d" % (threading.get_ident(), n % 100)
        self.socket.sendall(b"SET %s %d\r\nGET %s\r\nINCRBY %s 5\r\nEVAL \"return #ARGV[1]\" 0 %s\r\n" % (key, n, key,
            key, b"x" * (n % 50 + 1)))
        self.expect(b"+OK\r\n$%d\r\n%d\r\n:%d\r\n:%d\r\n" % (len(b"%d" % n), n, n + 5, n % 50 + 1))


class Memcached(Stream):
    def ask(self, n):
        key, value = b"%d.%d" % (threading.get_ident(), n % 100), b"y" * (n % 3000)
        self.socket.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key))
        self.expect(b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value))


PAGE = bytes(range(256)) * 100


class Http(Stream):
    PATH = b"/page"

    def ask(self, n):
        self.socket.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % (self.PATH if n % 5 else b"/none"))
        status, length = self.file.readline().split(b" ")[1], None
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if line.lower().startswith(b"connection: close"):
                raise AssertionError("the server closes the connection")
        body = self.file.read(length)
        if (status, body == PAGE) != ((b"200", True) if n % 5 else (b"404", False)):
            raise AssertionError(f"{status!r}, {len(body)} bytes for question {n}")


class Cached(Http):
    def ask(self, n):
        super().ask(n % 4 + 1)  # what is not there closes the connection to the server behind


class Proxied(Http):
    PATH = b"http://127.0.0.1:%d/page"

    def __init__(self, port):
        super().__init__(port)
        self.PATH = Http.PATH.join([b"http://127.0.0.1:%d" % Server.behind, b""])

    def ask(self, n):
        super().ask(n % 4 + 1)


class Names:
    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(40)
        self.socket.connect(("127.0.0.1", port))
        end = time.monotonic() + 40
        while True:  # a datagram to nobody is an error at once
            try:
                self.ask(1)
                break
            except (OSError, AssertionError):  # nobody is there yet, or has read its zones
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def ask(self, n):
        name = b"h%d" % (n % 50)
        question = b"".join(bytes([len(part)]) + part for part in (name, b"test", b"zone")) + b"\0\0\1\0\1"
        self.socket.send(struct.pack(">HHHHHH", n & 65535, 0x100, 1, 0, 0, 0) + question)
        answer = self.socket.recv(4096)
        count = struct.unpack(">H", answer[6:8])[0]
        at = 12 + len(question)
        if answer[:2] != struct.pack(">H", n & 65535) or count != 1 or answer[at + 12:at + 16] != bytes([10, 0, 0, n % 50]):
            raise AssertionError(f"wrong answer {answer!r}")

    def close(self):
        self.socket.close()


class Postgres(Stream):
    """The protocol, version 3, without a password."""

    def __init__(self, port):
        end = time.monotonic() + 40
        while True:
            super().__init__(port)
            words = b"user\0postgres\0database\0postgres\0\0"
            self.socket.sendall(struct.pack(">II", len(words) + 8, 196608) + words)
            try:
                self.until_ready()
                return
            except AssertionError:  # it is starting up
                self.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def until_ready(self):
        rows = []
        while True:
            kind, length = struct.unpack(">cI", self.file.read(5))
            body = self.file.read(length - 4)
            if kind == b"E":
                raise AssertionError(body)
            if kind == b"D":
                rows.append(body[6:])
            if kind == b"Z":
                return rows

    def ask(self, n):
        query = (b"begin; create temp table if not exists t(a int, b text); insert into t select i, md5(i::text) from "
                 b"generate_series(1, 50) i; select count(distinct b) + %d from t; truncate t; commit;\0" % n)
        self.socket.sendall(b"Q" + struct.pack(">I", len(query) + 4) + query)
        if (rows := self.until_ready()) != [b"%d" % (50 + n)]:
            raise AssertionError(f"{rows}")


class Mariadb:
    """Debian's client, one for all questions."""

    def __init__(self, port):
        Stream(port).close()
        self.client = subprocess.Popen(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-B",
            "--unbuffered"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.ask(0)

    def ask(self, n):
        self.client.stdin.write(b"create temporary table if not exists test.t(a int primary key, b text) engine=innodb; "
            b"begin; insert into test.t "
                                b"select seq, md5(seq) from test.seqs; select count(distinct b) + %d from test.t; "
                                b"delete from test.t; commit;\n"
                                .replace(b"test.seqs", b"(select 1 seq union select 2 union select 3) s") % n)
        self.client.stdin.flush()
        if (line := self.client.stdout.readline()) != b"%d\n" % (3 + n):
            raise AssertionError(f"{line}")

    def close(self):
        self.client.stdin.close()
        self.client.stdout.close()
        self.client.wait()


class Mqtt(Stream):
    def __init__(self, port):
        super().__init__(port)
        self.topic = b"t%08x" % (threading.get_ident() & 0xffffffff)
        name = b"\0\x09" + self.topic
        self.socket.sendall(b"\x10" + bytes([10 + len(name)]) + b"\0\4MQTT\4\2\0\0" + name)
        self.expect(b"\x20\2\0\0")
        self.socket.sendall(b"\x82" + bytes([2 + len(name) + 1]) + b"\0\1" + name + b"\0")
        self.expect(b"\x90\3\0\1\0")

    def ask(self, n):
        message = b"\x30" + bytes([11 + n % 100]) + b"\0\x09" + self.topic + b"z" * (n % 100)
        self.socket.sendall(message)
        self.expect(message)


class Lines(Stream):
    def ask(self, n):
        self.socket.sendall(b"%d\n" % n)
        self.expect(b"%d\n" % (n * n + 21))


class Server(NamedTuple):
    """`files`: what lies in its directory, {d} there and in words; {p} is its port, {b} that of the server behind it."""
    name: str
    words: list
    client: type
    files: dict = {}
    user: str = "root"
    prepare: str = ""
    needs_behind: bool = False
    stop: int = signal.SIGTERM


Server.behind = 0
NGINX = """user root; daemon off; worker_processes 2; pid {d}/pid; error_log {d}/errors; events { worker_connections 64; }
http { access_log off; keepalive_requests 100000000; etag off; client_body_temp_path {d}/b; proxy_temp_path {d}/p;
fastcgi_temp_path {d}/f;
  uwsgi_temp_path {d}/u; scgi_temp_path {d}/s; server { listen 127.0.0.1:{p}; root {d}; } }"""
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("postgresql"))
HOSTS = [(f"h{i}", f"10.0.0.{i}") for i in range(50)]
SERVERS = [
    Server("redis-server", ["redis-server", "--port", "{p}", "--save", "", "--dir", "{d}", "--io-threads", "2", "--bind",
        "127.0.0.1"], Redis),
    Server("memcached", ["memcached", "-l", "127.0.0.1", "-p", "{p}", "-U", "0", "-t", "4", "-u", "root"], Memcached),
    Server("nginx", ["nginx", "-c", "{d}/nginx.conf", "-p", "{d}", "-e", "{d}/errors"], Http, {"nginx.conf": NGINX}),
    Server("apache2", ["apache2", "-DFOREGROUND", "-d", "{d}", "-f", "{d}/apache.conf"], Http, {"apache.conf": """
ServerName here
PidFile {d}/pid
ErrorLog {d}/errors
Listen 127.0.0.1:{p}
DocumentRoot {d}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
"""}),
    Server("lighttpd", ["lighttpd", "-D", "-f", "{d}/lighttpd.conf"], Http,
        {"lighttpd.conf": 'server.document-root = "{d}"\nserver.port = {p}\n'
           'server.bind = "127.0.0.1"\nserver.max-keep-alive-requests = 100000000\nserver.errorlog = "{d}/errors"\n'}),
    Server("haproxy", ["haproxy", "-W", "-db", "-f", "{d}/haproxy.cfg"], Http,
        {"haproxy.cfg": "global\n nbthread 2\ndefaults\n mode http\n"
           " timeout connect 40s\n timeout client 40s\n timeout server 40s\nfrontend f\n bind 127.0.0.1:{p}\n "
           "default_backend b\nbackend b\n"
           " server s 127.0.0.1:{b}\n"}, needs_behind=True),
    Server("varnishd", ["varnishd", "-F", "-a", "127.0.0.1:{p}", "-n", "{d}/state", "-j", "none", "-s", "malloc,32m",
        "-f", "{d}/x.vcl"], Cached,
           {"x.vcl": 'vcl 4.1; backend default { .host = "127.0.0.1"; .port = "{b}"; } sub vcl_recv { if '
               '(req.http.never) { return (pass); } }'},
           needs_behind=True),
    Server("squid", ["squid", "-N", "-n", "k{p}", "-f", "{d}/squid.conf"], Proxied,
        {"squid.conf": "http_port 127.0.0.1:{p}\nhttp_access allow all\npid_filename {d}/pid\n"
           "cache_log {d}/errors\naccess_log none\ncache_effective_user proxy\nclient_persistent_connections "
           "on\nshutdown_lifetime 0 seconds\n"
           "netdb_filename none\npinger_enable off\n"}, needs_behind=True),
    Server("named", ["named", "-g", "-c", "{d}/named.conf", "-n", "2"], Names, {
        "named.conf": 'options { directory "{d}"; listen-on port {p} { 127.0.0.1; }; listen-on-v6 { none; }; pid-file '
        'none; recursion no; '
                      'session-keyfile none; dnssec-validation no; }; controls { }; zone "test.zone" { type primary; '
                      'file "zone"; };',
        "zone": "$TTL 60\n@ SOA a b 1 60 60 60 60\n@ NS a\na A 10.1.1.1\n" + "".join(f"{h} A {a}\n" for h, a in HOSTS)}),
    Server("unbound", ["unbound", "-d", "-c", "{d}/unbound.conf"], Names,
        {"unbound.conf": 'server:\n interface: 127.0.0.1\n port: {p}\n chroot: ""\n'
           ' username: ""\n directory: "{d}"\n pidfile: ""\n use-syslog: no\n num-threads: 2\n do-ip6: no\n local-zone: '
           '"zone." static\n'
           + "".join(f' local-data: "{h}.test.zone. A {a}"\n' for h, a in HOSTS)}),
    Server("dnsmasq", ["dnsmasq", "-k", "-C", "/dev/null", "-p", "{p}", "-a", "127.0.0.1", "--bind-interfaces", "-R",
        "-h", "-x", "", "-u", "root", "-H",
                       "{d}/hosts"], Names, {"hosts": "".join(f"{a} {h}.test.zone\n" for h, a in HOSTS)}),
    Server("mosquitto", ["mosquitto", "-c", "{d}/mosquitto.conf"], Mqtt,
        {"mosquitto.conf": "listener {p} 127.0.0.1\nallow_anonymous true\nuser root\n"}),
    Server("erl", ["erl", "-noshell", "-eval", "{ok, L} = gen_tcp:listen({p}, [binary, {packet, line}, {active, false}, "
        "{reuseaddr, true}, {ip, {127,0,0,1}}, "
                   "{nodelay, true}]), F = fun G(N) when N < 2 -> N; G(N) -> G(N-1) + G(N-2) end, S = fun E(C) -> case "
                   "gen_tcp:recv(C, 0) of {ok, B} -> "
                   "N = binary_to_integer(string:trim(B)), gen_tcp:send(C, [integer_to_list(N * N + F(8)), 10]), E(C); "
                   "_ -> ok end end, "
                   "A = fun A() -> {ok, C} = gen_tcp:accept(L), spawn(fun() -> S(C) end), A() end, A()."], Lines),
    Server("node", ["node", "-e", "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); require('net').createServer(s => { "
        "let b = ''; s.on('data', d => { b += d; let i; "
                    "while ((i = b.indexOf('\\n')) >= 0) { const n = +b.slice(0, i); b = b.slice(i + 1); s.write(n * n "
                    "+ f(8) + '\\n'); } }); s.on('error', () => 0); })"
                    ".listen({p}, '127.0.0.1'); process.on('SIGTERM', () => process.exit(7))"], Lines),
    Server("postgres", [f"{POSTGRES}/postgres", "-D", "{d}/data", "-p", "{p}", "-k", "{d}", "-c",
        "listen_addresses=127.0.0.1"], Postgres,
           user="postgres", prepare=f"{POSTGRES}/initdb -D {{d}}/data -A trust -N", stop=signal.SIGINT),
    Server("mariadbd", ["mariadbd", "--no-defaults", "--user=root", "--datadir={d}/data", "--port={p}",
        "--socket={d}/socket", "--bind-address=127.0.0.1",
                        "--skip-grant-tables", "--skip-networking=0", "--pid-file={d}/pid"], Mariadb,
           prepare="mariadb-install-db --no-defaults --user=root --datadir={d}/data --skip-test-db "
               "--auth-root-authentication-method=normal; "
                   "mkdir -p {d}/data/test"),
]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def family(pid):
    """The process and all below it but Karst's own: number and time of start."""
    parents, found = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
            fields = rest.split()
        except OSError:
            continue
        if fields[0] != "Z" and "(karst-" not in name:
            parents[int(path.parent.name)] = (int(fields[1]), fields[19])
    todo = [pid]
    while todo:
        one = todo.pop()
        if one in parents:
            found[one] = parents[one][1]
        todo += [p for p, (parent, _) in parents.items() if parent == one]
    return found


class Load:
    """Clients that ask until they are told to stop."""

    def __init__(self, server, port, clients=3):
        self.counts, self.gaps, self.failures, self.stopping = [0] * clients, [0.0] * clients, [], False
        self.started = threading.Barrier(clients + 1)
        self.threads = [threading.Thread(target=self.one, args=(server, port, n), daemon=True) for n in range(clients)]
        for thread in self.threads:
            thread.start()
        try:
            self.started.wait(60)
        except threading.BrokenBarrierError:
            self.stopping = True

    def one(self, server, port, number):
        try:
            client = server.client(port)
            client.ask(1)
            self.started.wait(60)
            while not self.stopping:
                begin = time.monotonic()
                client.ask(self.counts[number])
                self.gaps[number] = max(self.gaps[number], time.monotonic() - begin)
                self.counts[number] += 1
                time.sleep(0.001)
            client.close()
        except Exception as error:  # told by who looks at failures
            self.failures.append(repr(error)[:300])
            self.started.abort()

    def gap(self):
        """The longest since the last time this was asked."""
        longest, self.gaps[:] = max(self.gaps), [0.0] * len(self.gaps)
        return longest

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(60)
        if any(thread.is_alive() for thread in self.threads):
            self.failures.append("a client waits for its answer")


class Running:
    """A server that was started, and its load."""

    def __init__(self, bench, server, before=(), behind=None):
        self.server, self.directory = server, bench.home / f"server-{server.name}"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        self.directory.chmod(0o777 if server.name == "squid" else 0o755)  # squid has a user of its own
        self.port = free_port()
        places = {"{d}": str(self.directory), "{p}": str(self.port), "{b}": str(behind.port if behind else 0)}
        if server is not BEHIND:
            Server.behind = behind.port if behind else 0

        def filled(text):
            for name, value in places.items():
                text = text.replace(name, value)
            return text
        (self.directory / "page").write_bytes(PAGE)
        for name, text in server.files.items():
            (self.directory / name).write_text(filled(text))
        if server.user != "root":
            shutil.chown(self.directory, server.user)
        environment = {**bench.environment, "HOME": str(self.directory)}
        user = {} if server.user == "root" else {"user": server.user, "group": server.user, "extra_groups": []}
        if server.prepare:
            subprocess.run(filled(server.prepare), shell=True, cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, **user)
        self.log = open(bench.home / f"{server.name}.log", "wb")
        if before and user:
            before, user = [*before[:-1], "--user", server.user, "--"], {}
        begin = time.monotonic()
        self.process = subprocess.Popen([*before, *map(filled, server.words)], cwd=self.directory, env=environment,
            stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True, **user)
        self.load = Load(server, self.port)
        self.seconds = time.monotonic() - begin

    def stop(self):
        """Ends load and server: status."""
        self.load.stop()
        time.sleep(0.2)  # lighttpd's status says whether it still had connections
        alive = self.process.poll() is None
        if alive:
            self.process.send_signal(self.server.stop)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            status = "does not end"
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        return status if alive else f"had ended with {status}"


BEHIND = next(s for s in SERVERS if s.name == "nginx")._replace(name="behind")


def karst(said, bench, *words):
    """One command; what it says is kept once for each text, without its numbers."""
    begin = time.monotonic()
    try:
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, env=bench.environment,
            cwd=bench.home, timeout=60,
                              stdin=subprocess.DEVNULL)
        status, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        status, text = "none in 60 s", str(error.stdout)
    for line in text.splitlines() or [""]:
        key = (words[0], status, re.sub(r"[\d.,]+", "N", line))
        said.setdefault(key, [0, line])[0] += 1
    return status, time.monotonic() - begin


def attach_rounds(bench, running, options, rounds, said, wrong):
    """Longest time of a command, and of each round's gap. Who refuses twice is not asked again."""
    slowest, gaps, refused = {}, [], {}
    snapshot = ("--last", "100ms", "--no-source", "-o", bench.home / "snapshot.karst")
    for turn in range(rounds):
        for pid in family(running.process.pid):
            for name, *more in (("attach", *options), ("snapshot", *snapshot), ("off",), ("on",), ("detach",)):
                if refused.get(pid, 0) >= 2:
                    break
                status, seconds = karst(said, bench, name, pid, *more)
                slowest[name] = max(slowest.get(name, 0), seconds)
                if status != 0:
                    wrong.setdefault(f"{name}: status {status}", []).append(turn)
                if name == "attach" and status != 0:
                    refused[pid] = refused.get(pid, 0) + 1
                    break
        gaps.append(running.load.gap())
        if running.load.failures or running.process.poll() is not None:
            wrong.setdefault("the server or its answers", []).append(turn)
            break
    return slowest, gaps


def examine_server(bench, server, table, rounds):
    path = bench.environment["PATH"]
    for words in (server.words, BEHIND.words if server.needs_behind else server.words):
        if shutil.which(words[0], path=path) is None:
            table.row(server.name, "-", f"skipped, there is no {words[0]}")
            return
    behind = Running(bench, BEHIND) if server.needs_behind else None
    try:
        plain = Running(bench, server, behind=behind)
        time.sleep(3)
        gap, status = plain.load.gap(), plain.stop()
        if plain.load.failures:
            table.row(server.name, "untraced", "FAILS", more=plain.load.failures[:2] + [tail(bench, server)])
            table.failed = True
            return
        table.row(server.name, "untraced", f"{sum(plain.load.counts)} answers in 3 s", more=[
            f"longest gap {gap * 1e3:.1f} ms, first answers after {plain.seconds:.2f} s, status at the end {status}"])
        for mode, options in ATTACHED.items():
            running, said, wrong = Running(bench, server, behind=behind), {}, {}
            before = family(running.process.pid)
            time.sleep(1)
            quiet = running.load.gap()
            slowest, gaps = attach_rounds(bench, running, options, rounds, said, wrong)
            after = family(running.process.pid)
            gone = [pid for pid, start in before.items() if after.get(pid) != start]
            ended = running.stop()
            told(table, server, mode, running, wrong, gone, ended, status, [
                f"longest gap {quiet * 1e3:.1f} ms before, {max(gaps) * 1e3:.1f} ms in {len(gaps)} rounds of "
                f"{len(before)} processes; slowest "
                + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in slowest.items())]
                + [f"{count} x {key[0]} ({key[1]}): {line}" for key, (count,
                    line) in said.items() if key[0] == "attach" or key[1] != 0], bench)
        for mode, options in MODES.items():
            trace = bench.home / "trace.karst"
            running = Running(bench, server, [KARST, "run", *options, "-o", str(trace), "--"], behind)
            time.sleep(3)
            gap, ended = running.load.gap(), running.stop()
            for _ in range(300):
                if trace.exists():
                    break
                time.sleep(0.1)
            wrong = {} if trace.exists() else {"no trace": []}
            trace.unlink(missing_ok=True)
            if ended == 128 - status if isinstance(status, int) and status < 0 else False:
                ended = status
            said = [line for line in (bench.home / f"{server.name}.log").read_text(errors="replace").splitlines()
                    if line.startswith("karst: ") and not USUAL.search(line)]
            told(table, server, mode, running, wrong, [], ended, status, [
                f"longest gap {gap * 1e3:.1f} ms, first answers after {running.seconds:.2f} s, untraced "
                f"{plain.seconds:.2f} s", *dict.fromkeys(said)],
                bench)
    finally:
        if behind:
            behind.stop()
    table.tried += 1


def tail(bench, server):
    return (bench.home / f"{server.name}.log").read_text(errors="replace")[-1500:]


def told(table, server, mode, running, wrong, gone, ended, status, more, bench):
    problems = [f"{name}, {len(turns)} times" for name, turns in wrong.items()]
    problems += running.load.failures[:2] + ([f"processes gone: {gone}"] if gone else [])
    problems += [f"ended with {ended}, untraced {status}"] if ended != status else []
    table.failed = table.failed or bool(problems)
    table.row(server.name, mode, f"{sum(running.load.counts)} answers, " + ("DIFFERS" if problems else "all right"),
        more=[*problems, *more])
    if ended != status or running.load.failures:
        print(tail(bench, server))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each mode")
    parser.add_argument("--attach", type=int, default=10, help="rounds of attaching to each server")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--programs", action="store_const", dest="kind", const=[Program], help="no servers")
    kind.add_argument("--servers", action="store_const", dest="kind", const=[Server], help="servers alone")
    options = parser.parse_args()
    things = [t for t in [*PROGRAMS, *SERVERS] if type(t) in (options.kind or [Program, Server])]
    known = {t.name for t in things}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no program {name}; there are: {', '.join(sorted(known))}")
    table = Table()
    with tempfile.TemporaryDirectory(prefix="karst-stock-") as home:
        bench = Bench(Path(home))
        print(f"{'program':12} {'mode':15} {'result':30} {'untraced':>8} {'traced':>8} {'first':>8}")
        for thing in [t for t in things if not options.names or t.name in options.names]:
            if isinstance(thing, Program):
                examine(bench, thing, table, options.rounds)
            else:
                examine_server(bench, thing, table, options.attach)
    sys.exit(1 if table.failed or not table.tried else 0)


if __name__ == "__main__":
    main()

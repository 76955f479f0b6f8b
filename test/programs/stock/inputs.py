"""What the programs are given: files that a run of them reads, and Lua and SQL text."""
import struct
import wave

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

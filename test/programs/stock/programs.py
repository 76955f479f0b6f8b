"""The programs, each with a small piece of work that has the same result each time."""
from typing import NamedTuple

from inputs import LUA, SQL


class Program(NamedTuple):
    """Words are started in an empty directory; {i} is that of INPUT. `ignore`: what is no part of the result."""
    name: str
    words: list
    stdin: bytes = b""
    ignore: bytes = b""
    seconds: int = 60


def shell(name, line, *more, **options):
    return Program(name, ["dash", "-c", line, *more], **options)


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

"""Man pages and completions say what karst's own help says, and work in the shells they are for."""
import gzip
import json
import re
import shutil
import subprocess
import unittest

from installed import ROOT, Installed, command

ZSH_DRIVER = r"""
zmodload zsh/zpty
zpty z 'zsh -f -i'
zpty -w z "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $2; zstyle ':completion:*' list-prompt ''; "
zpty -w z "zstyle ':completion:*' completer _complete; LISTMAX=1000; bindkey '^I' complete-word; print rea''dy"
zpty -r -m z line '*ready*'
zpty -w -n z "$3"$'\t\t'
sleep 2
zpty -w -n z $'\C-u'"print en''d"$'\n'
zpty -r -m z line '*end*'
print -r -- "$line"
"""


class ManualTest(Installed):
    def description(self):
        return json.loads(command(self.bin / "karst", "describe"))

    def pages(self):
        return {p.name.removesuffix(".1.gz"): p for p in (self.prefix / "share/man/man1").glob("*.1.gz")}

    def test_every_command_has_a_page_with_every_option(self):
        pages = self.pages()
        for c in self.description()["commands"]:
            if c["name"] == "help":
                continue
            page = gzip.decompress(pages["karst-" + c["name"]].read_bytes()).decode().replace("\\-", "-")
            text = command(self.bin / "karst", "help", c["name"])
            shown = set(re.findall(r"(?m)^  (?:-\w, ?)?(--[a-z-]+)", text))
            self.assertTrue(shown)
            for option in shown:
                self.assertRegex(page, rf"\\fB{option}\\fR", f"{c['name']} {option}")

    def test_page_of_the_wrappers_has_every_option_of_theirs(self):
        source = "".join(p.read_text() for p in (ROOT / "toolchain").glob("*.cc"))
        page = gzip.decompress(self.pages()["karst-gcc"].read_bytes()).decode().replace("\\-", "-")
        own = set(re.findall(r"--karst-[a-z-]*[a-z]", source)) - {"--karst-source"}  # karst-as's own
        self.assertIn("--karst-link", own)
        self.assertEqual([o for o in sorted(own) if o not in page], [])

    def test_pages_are_laid_out_without_complaint(self):
        if shutil.which("man") is None:
            self.skipTest("man is not installed")
        for name, page in self.pages().items():
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-P", "cat", str(page)], text=True,
                                  capture_output=True, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("NAME", re.sub(".\b", "", done.stdout))

    def bash(self, *words):
        """What bash offers for the last of the words."""
        script = (f"source {self.prefix}/share/bash-completion/completions/karst; compopt() {{ :; }}; "
                  "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _karst; printf '%s\\n' \"${COMPREPLY[@]}\"")
        return command("bash", "--norc", "-c", script, "bash", *words, cwd=self.directory).split()

    def test_bash_completes_commands_options_and_their_values(self):
        commands = {c["name"]: c for c in self.description()["commands"]}
        self.assertEqual(set(commands), {w for w in self.bash("karst", "") if not w.startswith("-")})
        for name, c in commands.items():
            own = {n for o in c["options"] for n in o["names"]}
            if name != "help":
                self.assertEqual(set(self.bash("karst", name, "-")), own)
        self.assertEqual(self.bash("karst", "report", "--sort", "ca"), ["calls"])
        self.assertEqual(self.bash("karst", "report", "--sort", "=", "ca"), ["calls"])
        self.assertIn("perfetto", self.bash("karst", "export", "--to", ""))
        (self.directory / "one.karst").touch()
        (self.directory / "other.txt").touch()
        self.assertEqual(self.bash("karst", "tree", "o"), ["one.karst"])
        # What follows the program's name is the program's own.
        self.assertEqual(self.bash("karst", "run", "--memory", "1G", "./x", "ot"), ["other.txt"])
        self.assertEqual(self.bash("karst", "run", "./x", "--mem"), [])

    def zsh(self, line):
        return command("zsh", "-f", "-c", ZSH_DRIVER, "zsh", self.prefix / "share/zsh/vendor-completions",
                       self.directory / "dump", line, cwd=self.directory, env=self.environment(TERM="dumb"))

    def test_zsh_completes_commands_options_and_their_values(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        offered = self.zsh("karst ")
        for c in self.description()["commands"]:
            self.assertIn(c["name"], offered)
        offered = self.zsh("karst report --")
        for option in ("--sort", "--limit", "--format", "--process"):
            self.assertIn(option, offered)
        offered = self.zsh("karst report --sort ")
        for word in ("total", "self", "calls", "max"):
            self.assertIn(word, offered)


if __name__ == "__main__":
    unittest.main(verbosity=2)

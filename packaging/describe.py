#!/usr/bin/env python3
"""Man pages, shell completions and docs/reference.md, out of what `karst describe` says: never made by hand.

  describe.py KARST VERSION OUT [PAGE...]   writes OUT/man/*.1.gz, with PAGEs that are written by hand,
                                            OUT/bash/karst and OUT/zsh/_karst
  describe.py KARST --reference             prints docs/reference.md
"""
import gzip
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

FILE_VALUES = {"FILE", "OUT", "FILE2", "DIR", "DIRECTORY", "PROGRAM"}


def words(value):
    """The words of a type name like text|csv|json; none where it names a kind of value, like NAME|TID."""
    parts = value.split("|")
    return parts if len(parts) > 1 and all(re.fullmatch(r"[a-z][a-z0-9-]*", p) for p in parts) else []


def flags(command):
    return [o for o in command["options"] if o["names"]]


def groups(command):
    """The options that have names, as (heading, options), ordered as in the help: "Options", where --help is, is last."""
    found = {}
    for o in sorted(flags(command), key=lambda o: o["group"] == "Options"):
        found.setdefault(o["group"], []).append(o)
    return found.items()


def positions(command):
    return [o for o in command["options"] if o["position"]]


def heading_of(command, app, heading, escape):
    """The heading of the commands' list that stands before this one, if it is the first of its group."""
    first = next(c for c in app["commands"] if c["group"] == command["group"])
    return heading.format(escape(command["group"])) if first is command else ""


# Man pages ---------------------------------------------------------------------------------------------------------

def roff(text):
    """Text as roff takes it: backslashes, hyphens to be typed, and control characters at the start of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("~", "\\(ti").replace("^", "\\(ha")
    return re.sub(r"(?m)^([.])", r"\\&\1", text)


def option_term(option):
    value = option["value"]
    names = ", ".join(f"\\fB{roff(n)}\\fR" for n in option["names"])
    if not option["takes_value"]:
        return names
    # A line may break behind each of many words.
    shown = roff(value).replace("|", "|\\:") if words(value) else f"\\fI{roff(value or 'VALUE')}\\fR"
    return f"{names} {'[' + shown + ']' if option['value_optional'] else shown}"


def man_page(name, title, version, synopsis, body):
    return (f'.TH {name.upper().replace(" ", "-")} 1 "" "Karst {version}" "Karst"\n.SH NAME\n{roff(name)} \\- {roff(title)}\n'
            f".SH SYNOPSIS\n{synopsis}\n{body}")


def verbatim(text):
    return ".nf\n" + roff(text.strip("\n")) + "\n.fi\n"


def footer_section(text):
    """Footers are laid out for a terminal, so they keep their lines; a usage line of their own is the synopsis."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("Usage: "))
    return ".SH NOTES\n" + verbatim(text) if text.strip() else ""


def synopsis_of(path, command):
    for line in command["footer"].splitlines():
        if line.startswith("Usage: "):
            return f".B {roff(line[len('Usage: '):])}"
    places = " ".join((f"\\fI{roff(p['position'])}\\fR" if p["required"] else f"[\\fI{roff(p['position'])}\\fR]")
                      for p in positions(command))
    return f"\\fB{roff(path)}\\fR [\\fIOPTIONS\\fR] {places}".rstrip()


def options_section(command):
    out = ""
    if positions(command):
        out += ".SH ARGUMENTS\n"
        for p in positions(command):
            out += f".TP\n\\fI{roff(p['position'])}\\fR\n{roff(p['help'])}\n"
    out += ".SH OPTIONS\n"
    for heading, options in groups(command):
        out += f".SS {roff(heading)}\n" if len(groups(command)) > 1 else ""
        out += "".join(f".TP\n{option_term(o)}\n{roff(o['help'])}\n" for o in options)
    return out


def entry(option):
    """What stands in KARST_OPTIONS for an option: memory=SIZE, off=0|1."""
    return f"{option['name']}={option['value'] or '0|1'}"


def entry_help(option):
    """What it does, or the flag that says so; what may stand there; and what there is without it."""
    text = f"As {option['flag']}" if option["value"] else f"{option['says']}: as {option['flag']}"
    if not option["flag"]:
        text = option["help"]
    if option["needed"] and option["value"] and "|" not in option["value"]:
        text += ": " + option["needed"].replace(" is needed", "")
    return text + "." + (f" Default: {option['default']}." if option["default"] else "")


ENVIRONMENT = ("KARST_OPTIONS has options with commas between, as in memory=256M,off=1; a backslash takes the next character "
               "as it is. What the command line says wins. What is unknown or malformed is said once and ignored.")
KARST_ALONE = "karst run alone takes:"


def environment_parts(command):
    options = command.get("environment", [])
    return [o for o in options if not o["karst_alone"]], [o for o in options if o["karst_alone"]]


def environment_section(command):
    ours, alone = environment_parts(command)
    if not ours:
        return ""
    terms = ["".join(f".TP\n\\fB{roff(entry(o))}\\fR\n{roff(entry_help(o))}\n" for o in part) for part in (ours, alone)]
    return f".SH ENVIRONMENT\n{roff(ENVIRONMENT)}\n{terms[0]}.PP\n{roff(KARST_ALONE)}\n{terms[1]}"


def see_also(names):
    return ".SH SEE ALSO\n" + ",\n".join(f"\\fB{roff(n)}\\fR(1)" for n in names) + "\n"


def main_page(app, version):
    title, _, rest = app["description"].partition("\n")
    body = f".SH DESCRIPTION\n{roff(title)}\n" + verbatim(rest) + ".SH COMMANDS\n"
    for c in app["commands"]:
        body += heading_of(c, app, ".SS {}\n", roff)
        page = f" See \\fBkarst\\-{roff(c['name'])}\\fR(1)." if c["name"] != "help" else ""
        body += f".TP\n\\fBkarst {roff(c['name'])}\\fR\n{roff(c['description'])}.{page}\n"
    body += options_section(app) + footer_section(app["footer"])
    body += see_also([f"karst-{c['name']}" for c in app["commands"] if c["name"] != "help"] + ["karst-gcc"])
    return man_page("karst", "function-call tracing profiler for C and C++", version,
                    "\\fBkarst\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...", body)


def command_page(command, version):
    name = f"karst-{command['name']}"
    description = command["description"]
    body = f".SH DESCRIPTION\n{roff(description)}.\n" + options_section(command) + environment_section(command)
    body += footer_section(command["footer"]) + see_also(["karst", "karst-gcc"])
    return man_page(name, description[0].lower() + description[1:], version,
                    synopsis_of(f"karst {command['name']}", command), body)


# Markdown -----------------------------------------------------------------------------------------------------------

def markdown_list(text, term):
    """An option and its help, in lines that a table could not have."""
    lines = textwrap.wrap(text + ("" if text.endswith(".") else "."), 112, break_long_words=False, break_on_hyphens=False)
    return f"* {term}\n" + "".join(f"  {escaped(line)}\n" for line in lines)


def escaped(text):
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)


def code(text):
    return f"`{text}`"


def markdown_option(option):
    names = ", ".join(code(n) for n in option["names"]) or code(option["position"])
    value, text = option["value"] or "VALUE", option["help"]
    if len(value) > 40 and words(value):
        value, text = "WORD", f"{text.rstrip('.')}. One of: {', '.join(words(value))}"
    if option["names"] and option["takes_value"]:
        names += " " + code(f"[{value}]" if option["value_optional"] else value)
    return markdown_list(text, names)


def markdown_command(title, usage, command):
    out = f"\n## {title}\n\n{escaped(command['description'].partition(chr(10))[0])}.\n\n```\n{usage}\n```\n"
    out += "".join("\n" + markdown_option(p) for p in positions(command)[:1])
    out += "".join(markdown_option(p) for p in positions(command)[1:])
    for heading, options in groups(command):
        out += f"\n**{heading}**\n" if len(groups(command)) > 1 else ""
        out += "\n" + "".join(map(markdown_option, options))
    ours, alone = environment_parts(command)
    if ours:
        terms = ["".join(markdown_list(entry_help(o), code(entry(o))) for o in part) for part in (ours, alone)]
        paragraphs = [textwrap.fill(escaped(text), 118) for text in (ENVIRONMENT, KARST_ALONE)]
        out += f"\n**KARST_OPTIONS**\n\n{paragraphs[0]}\n\n{terms[0]}\n{paragraphs[1]}\n\n{terms[1]}"
    footer = "\n".join(line for line in command["footer"].splitlines() if not line.startswith("Usage: ")).strip("\n")
    footer = "\n".join(textwrap.fill(line, 100, break_on_hyphens=False) if len(line) > 100 else line for line in footer.splitlines())
    return out + (f"\n```\n{footer}\n```\n" if footer else "")


def usage_of(path, command):
    for line in command["footer"].splitlines():
        if line.startswith("Usage: "):
            return line[len("Usage: "):]
    places = "".join(f" {p['position']}" if p["required"] else f" [{p['position']}]" for p in positions(command))
    return f"{path} [OPTIONS]{places}"


def reference(app):
    out = ("# Reference\n\nAll commands and options, as `karst help COMMAND` and the man pages have them.\n"
           "`packaging/describe.py` makes this page from what karst says of itself; a test compares the two.\n"
           "The [guide](guide/README.md) explains them, with their output.\n")
    out += "".join(heading_of(c, app, "\n{}:\n\n", escaped) +
                   f"* [karst {c['name']}](#karst-{c['name']}): {escaped(c['description'])}\n" for c in app["commands"])
    out += markdown_command("karst", "karst COMMAND [OPTIONS]", {**app, "description": "Options before any command"})
    return out + "".join(markdown_command(f"karst {c['name']}", usage_of(f"karst {c['name']}", c), c)
                         for c in app["commands"])


# bash ----------------------------------------------------------------------------------------------------------------

def bash_completion(app):
    names = " ".join(c["name"] for c in app["commands"])
    cases, values = "", ""
    for c in app["commands"]:
        own = " ".join(n for o in flags(c) for n in o["names"])
        cases += f"    {c['name']}) options=\"{own}\" ;;\n"
        taking = [o for o in flags(c) if o["takes_value"] and not o["value_optional"]]
        for o in taking:
            pattern = "|".join(f"{c['name']}:{n}" for n in o["names"])
            if words(o["value"]):
                values += f"    {pattern}) COMPREPLY=($(compgen -W \"{' '.join(words(o['value']))}\" -- \"$current\")); return ;;\n"
            elif o["value"] in FILE_VALUES:
                values += f"    {pattern}) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
            else:
                values += f"    {pattern}) return ;;\n"
    top = " ".join(n for o in flags(app) for n in o["names"])
    taking = " ".join(n for c in app["commands"] if c["name"] == "run" for o in flags(c)
                      if o["takes_value"] and not o["value_optional"] for n in o["names"])
    return f"""# bash completion of karst; made by packaging/describe.py, needs bash alone
_karst() {{
  local IFS=$' \\t\\n' command=${{COMP_WORDS[1]}} current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} options= i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names} {top}" -- "$current"))
    return
  fi
  if [ "$command" = help ]; then
    [ "$COMP_CWORD" -gt 2 ] || COMPREPLY=($(compgen -W "{names}" -- "$current"))
    return
  fi
  if [ "$command" = run ]; then
    # What follows the program's name is the program's.
    for ((i = 2; i < COMP_CWORD; i++)); do
      case ${{COMP_WORDS[i]}} in
        --) i=$((i + 1)); break ;;
        -*) case " {taking} " in *" ${{COMP_WORDS[i]}} "*) i=$((i + 1)) ;; esac ;;
        =) i=$((i + 1)) ;;
        *) break ;;
      esac
    done
    if [ "$i" -lt "$COMP_CWORD" ]; then
      if declare -F _command_offset >/dev/null; then _command_offset "$i"; else compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); fi
      return
    fi
  fi
  if [ "$previous" = = ]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; elif [ "$current" = = ]; then current=; fi
  case $command:$previous in
{values}  esac
  case $command in
{cases}  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *)
      if [ "$command" = run ]; then
        compopt -o filenames
        COMPREPLY=($(compgen -c -- "$current") $(compgen -f -- "$current"))
      else
        compopt -o filenames
        COMPREPLY=($(compgen -d -- "$current") $(compgen -f -X '!*.karst' -- "$current"))
      fi ;;
  esac
}}
complete -F _karst karst
"""


# zsh -----------------------------------------------------------------------------------------------------------------

def zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_action(option):
    value = option["value"] or option["position"]
    if words(value):
        return f":{'|'.join(words(value)).replace(':', '')}:({' '.join(words(value))})"
    if value in FILE_VALUES:
        return f":{value}:_files"
    return f":{zsh_text(value)}: "


def zsh_spec(option):
    names = option["names"]
    help_text = zsh_text(option["help"])
    action = zsh_action(option) if option["takes_value"] and not option["value_optional"] else ""
    repeat = "*" if "REGEX" in option["value"] or "=" in option["value"] else ""
    specs = []
    for n in names:
        joined = "=" if action and n.startswith("--") else "+" if action else ""
        exclude = "" if repeat or len(names) == 1 else "(" + " ".join(names) + ")"
        specs.append(f"'{exclude}{repeat}{n}{joined}[{help_text}]{action}'")
    return specs


def zsh_completion(app):
    out = "#compdef karst\n# zsh completion of karst; made by packaging/describe.py\n_karst() {\n  local -a commands\n  commands=(\n"
    for c in app["commands"]:
        out += f"    '{c['name']}:{zsh_text(c['description'])}'\n"
    out += "  )\n  if (( CURRENT == 2 )); then\n    _describe -t commands 'karst command' commands\n    _arguments \\\n"
    out += " \\\n".join("      " + s for o in flags(app) for s in zsh_spec(o)) + "\n    return\n  fi\n"
    out += "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n  case $command in\n"
    for c in app["commands"]:
        specs = [s for o in flags(c) for s in zsh_spec(o)]
        if c["name"] == "help":
            specs = ["'1:command:(" + " ".join(x["name"] for x in app["commands"]) + ")'"]
        elif c["name"] == "run":
            # As _arguments wants it, the rest of the line is the program's own.
            specs += ["'(-)1:program: _command_names -e'", "'*::arguments: _normal'"]
        else:
            for i, p in enumerate(positions(c), 1):
                specs.append(f"'{i}:{zsh_text(p['help'])}:_files -g \"*.karst(-.)\"'")
        out += f"    {c['name']})\n      _arguments -S \\\n" + " \\\n".join("        " + s for s in specs) + " ;;\n"
    return out + "  esac\n}\n_karst \"$@\"\n"


def main():
    if len(sys.argv) < 4 and sys.argv[2:] != ["--reference"]:
        sys.exit(__doc__)
    app = json.loads(subprocess.run([sys.argv[1], "describe"], check=True, capture_output=True, text=True).stdout)
    if sys.argv[2:] == ["--reference"]:
        print(reference(app), end="")
        return
    version, out = sys.argv[2], Path(sys.argv[3])
    for part in ("man", "bash", "zsh"):
        (out / part).mkdir(parents=True, exist_ok=True)
    for old in (out / "man").iterdir():
        old.unlink()
    pages = {"karst.1": main_page(app, version)}
    for command in app["commands"]:
        if command["name"] != "help":
            pages[f"karst-{command['name']}.1"] = command_page(command, version)
    for page in map(Path, sys.argv[4:]):
        pages[page.name] = page.read_text()
    for name, text in pages.items():
        (out / "man" / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (out / "bash/karst").write_text(bash_completion(app))
    (out / "zsh/_karst").write_text(zsh_completion(app))


if __name__ == "__main__":
    main()

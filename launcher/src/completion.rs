//! Completion scripts for shells, made from the table of flags.
//!
//! Promises that options, the words that an option may have, and files are completed up to the program; what follows belongs to
//! it, and gets files. Asks nothing of the machine.

use crate::command::help_of;
use crate::flags::{self, Flag};
use crate::value::{Kind, Value};

/// Shells that are known.
pub(crate) const SHELLS: &[&str] = &["bash", "zsh", "fish"];

/// The script for one of the shells.
pub(crate) fn script(shell: &str) -> String {
    match shell {
        "zsh" => zsh(),
        "fish" => fish(),
        _ => bash(),
    }
}

/// Whether the option's value is a file or folder.
fn is_path(flag: &Flag) -> bool {
    matches!(flag.kind, Kind::Path | Kind::Words)
}

/// Whether the option's value is the next word.
fn needs_value(flag: &Flag) -> bool {
    flag.kind.value() == Some(Value::Needed)
}

fn bash() -> String {
    let names: Vec<String> = flags::all().map(|flag| format!("--{}", flag.name)).collect();
    let with_value: Vec<_> =
        flags::all().filter(|flag| needs_value(flag)).map(|flag| format!("--{}", flag.name)).collect();
    let mut cases = String::new();
    for flag in flags::all().filter(|flag| needs_value(flag)) {
        let name = flag.name;
        match flag.kind.choices() {
            [] if is_path(flag) => cases += &format!("        --{name}) COMPREPLY=($(compgen -f -- \"$word\"));;\n"),
            [] => {}
            words => {
                let words = words.join(" ");
                cases += &format!("        --{name}) COMPREPLY=($(compgen -W '{words}' -- \"$word\"));;\n");
            }
        }
    }
    format!(
        r#"# Completes the options of legate in bash: eval "$(legate --completion bash)"
_legate() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} with_value=' {with_value} ' at
    COMPREPLY=()
    # Options end at the program.
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${{COMP_WORDS[at]}} in
            =) ((at++));;
            -[cm] | --module) [[ $((at + 1)) -lt $COMP_CWORD ]] && {{ COMPREPLY=($(compgen -f -- "$word")); return; }}; ((at++));;
            --*) [[ $with_value == *" ${{COMP_WORDS[at]}} "* && ${{COMP_WORDS[at+1]}} != = ]] && ((at++));;
            -*) ;;
            *) COMPREPLY=($(compgen -f -- "$word")); return;;
        esac
    done
    if [[ $word == = ]]; then word=''; fi
    if [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    case $before in
{cases}        *)
            if [[ $with_value == *" $before "* ]]; then return; fi
            case $word in
                -*) COMPREPLY=($(compgen -W '{names}' -- "$word"));;
                *) COMPREPLY=($(compgen -f -- "$word"));;
            esac;;
    esac
}}
complete -o filenames -o bashdefault -F _legate legate
"#,
        names = names.join(" "),
        with_value = with_value.join(" "),
    )
}

fn zsh() -> String {
    let quoted = |text: &str| text.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
    let mut rows = String::new();
    for flag in flags::all() {
        let repeats = if flag.kind == Kind::Words { "*" } else { "" };
        let value = match (flag.kind.value(), flag.kind.choices()) {
            (None, _) => String::new(),
            (Some(_), []) if is_path(flag) => format!(":{}:_files", quoted(flag.value_name)),
            (Some(_), []) => format!(":{}: ", quoted(flag.value_name)),
            (Some(_), words) => format!(":{}:({})", quoted(flag.value_name), words.join(" ")),
        };
        let joint = match flag.kind.value() {
            None => "",
            Some(Value::Needed) => "=",
            Some(Value::After { .. }) => "=-",
        };
        let value = if joint == "=-" { format!(":{value}") } else { value };
        let (name, help) = (flag.name, quoted(&help_of(flag)));
        rows += &format!("    '{repeats}--{name}{joint}[{help}]{value}' \\\n");
    }
    format!(
        "#compdef legate\n# Completes the options of legate in zsh: legate --completion zsh > a folder of $fpath, as _legate\n_legate() {{\n  \
         _arguments -S \\\n{rows}    '1:program:_files' '*::argument:_files'\n}}\nif [[ $funcstack[1] == _legate ]]; then _legate \"$@\"; else \
         compdef _legate legate; fi\n"
    )
}

fn fish() -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let mut rows = "# Completes the options of legate in fish: legate --completion fish | source\n".to_owned();
    for flag in flags::all() {
        let value = match (flag.kind.value(), flag.kind.choices()) {
            (Some(Value::Needed), []) if is_path(flag) => " -r -F".to_owned(),
            (Some(Value::Needed), []) => " -x".to_owned(),
            (Some(Value::Needed), words) => format!(" -x -a '{}'", words.join(" ")),
            (Some(Value::After { .. }), words) => format!(" -f -a '{}'", words.join(" ")),
            (None, _) => String::new(),
        };
        rows += &format!("complete -c legate -l {}{value} -d '{}'\n", flag.name, quoted(flag.help));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::{SHELLS, script};
    use crate::flags;

    #[test]
    fn every_shell_knows_every_flag() {
        for shell in SHELLS {
            let text = script(shell);
            for flag in flags::all() {
                assert!(text.contains(flag.name), "{shell}: {}", flag.name);
            }
        }
    }
}

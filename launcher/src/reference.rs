//! The reference of all options, in Markdown, as the README has it.
//!
//! Promises one row for each flag of the table. `scripts/bless` puts it into the README.

use crate::command::AFTER;
use crate::flags::{Flag, GROUPS};
use crate::value::Value;

/// The text of `--reference`.
pub(crate) fn text() -> String {
    let mut text = String::new();
    for group in GROUPS {
        text +=
            &format!("**{}**\n\n| option | meaning | default | variable |\n| --- | --- | --- | --- |\n", group.title);
        for flag in group.flags {
            let variable = flag.variable.map(|name| format!("`{name}`")).unwrap_or_default();
            let cells = [format!("`{}`", form(flag)), flag.help.to_owned(), flag.default.to_owned(), variable];
            text += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
        text.push('\n');
    }
    text + AFTER + "\n"
}

/// How the option is written.
fn form(flag: &Flag) -> String {
    match flag.kind.value() {
        None => format!("--{}", flag.name),
        Some(Value::Needed) => format!("--{} {}", flag.name, flag.value_name),
        Some(Value::After { .. }) => format!("--{}[={}]", flag.name, flag.value_name),
    }
}

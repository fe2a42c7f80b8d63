//! The processes that a process has started, as `/proc` tells.
//!
//! Promises only what was true when it looked: children may start and end meanwhile. Sends nothing to anybody.

use std::fs;

/// The children of all threads of a process.
pub(crate) fn of(process: libc::pid_t) -> Vec<libc::pid_t> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| numbers(&list)).collect()
}

/// Children of a process, and theirs, that are in its process group: those that a terminal's Ctrl-C reaches together with it.
pub(crate) fn beside(process: libc::pid_t) -> Vec<libc::pid_t> {
    let Some(group) = group_of(process) else { return Vec::new() };
    let mut found = Vec::new();
    let mut next = of(process);
    while let Some(child) = next.pop() {
        next.extend(of(child));
        if group_of(child) == Some(group) {
            found.push(child);
        }
    }
    found
}

fn numbers(list: &str) -> Vec<libc::pid_t> {
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// A process's group: the third field after the name, which stands in brackets and may hold anything.
fn group_of(process: libc::pid_t) -> Option<libc::pid_t> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

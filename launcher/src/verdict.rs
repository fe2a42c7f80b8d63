//! Why a batch system ended a job, in its own words: asked when a job was ended by SIGTERM.
//!
//! Promises an answer within seconds, or none. Ends nothing itself.

use std::collections::BTreeMap;
use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::family::on_path;

/// How long Slurm has to answer: less than ranks have to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// States of Slurm's jobs, and what they mean for the program.
const STATES: &[(&str, &str)] = &[
    ("TIMEOUT", "reached its time limit"),
    ("DEADLINE", "reached its deadline"),
    ("CANCELLED", "was cancelled"),
    ("PREEMPTED", "was preempted"),
    ("NODE_FAIL", "lost a node"),
    ("OUT_OF_MEMORY", "ran out of memory"),
    // While ranks end, Slurm tells of a time limit only.
    ("COMPLETING", "was cancelled or preempted"),
];

/// What became of this process's Slurm job, if it is in one that is ending.
pub(crate) fn of_slurm() -> Option<String> {
    let job = env::var("SLURM_JOB_ID").ok()?;
    let scontrol = on_path("scontrol")?;
    let mut child = Command::new(scontrol)
        .args(["--oneliner", "show", "job", &job])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take()?;
    let (send, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        // What cannot be read is no answer.
        let _ = stdout.read_to_string(&mut text);
        let _ = send.send(text);
    });
    let text = answer.recv_timeout(PATIENCE);
    // It has closed its output or is too late.
    let _ = child.kill();
    let _ = child.wait();
    meaning(&job, &text.ok()?)
}

/// One line for a job of which Slurm says this.
fn meaning(job: &str, text: &str) -> Option<String> {
    let fields: BTreeMap<&str, &str> = text.split_whitespace().filter_map(|field| field.split_once('=')).collect();
    let state = if fields.get("Reason") == Some(&"TimeLimit") { "TIMEOUT" } else { fields.get("JobState")? };
    let limit = fields.get("TimeLimit").copied().unwrap_or("UNLIMITED");
    if let Some((_, what)) = STATES.iter().find(|row| state.starts_with(row.0)) {
        let limit = if state == "TIMEOUT" { format!(" of {limit}") } else { String::new() };
        return Some(format!("Slurm job {job} {what}{limit}: all ranks are stopped"));
    }
    let left = seconds(limit)?.checked_sub(seconds(fields.get("RunTime")?)?)?;
    Some(format!("Slurm job {job} was told to end, {left} s before its time limit of {limit}: all ranks are stopped"))
}

/// Seconds in Slurm's `1-02:03:04`.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Option<Vec<u64>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let clock = parts?.into_iter().fold(0, |sum, part| sum * 60 + part);
    Some(days.parse::<u64>().ok()? * 86400 + clock)
}

#[cfg(test)]
mod tests {
    use super::meaning;

    #[test]
    fn states_become_sentences() {
        for (text, expected) in [
            (
                "JobState=TIMEOUT Reason=TimeLimit TimeLimit=00:01:00",
                Some("reached its time limit of 00:01:00: all ranks are stopped"),
            ),
            (
                "JobState=COMPLETING Reason=TimeLimit TimeLimit=00:01:00",
                Some("reached its time limit of 00:01:00: all ranks are stopped"),
            ),
            ("JobState=COMPLETING Reason=None", Some("was cancelled or preempted: all ranks are stopped")),
            ("JobState=CANCELLED Reason=None RunTime=00:00:05", Some("was cancelled: all ranks are stopped")),
            (
                "JobState=RUNNING RunTime=00:59:30 TimeLimit=01:00:00",
                Some("was told to end, 30 s before its time limit of 01:00:00: all ranks are stopped"),
            ),
            ("JobState=RUNNING RunTime=00:59:30 TimeLimit=UNLIMITED", None),
            ("JobState=RUNNING RunTime=1-00:00:01 TimeLimit=1-00:00:00", None),
            ("slurm_load_jobs error", None),
        ] {
            assert_eq!(meaning("7", text), expected.map(|text| format!("Slurm job 7 {text}")), "{text}");
        }
    }
}

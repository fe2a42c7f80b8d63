//! Counts for `--report`: per user line and operation, how it ran.
//!
//! Off by default; a noted call costs one frame lookup.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::intercept;

/// How an operation was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// By a launch of ours.
    Native,
    /// By NumPy's Python code over our arrays.
    Rebound,
    /// By the host NumPy on the memory of our arrays.
    Host,
}

impl How {
    fn word(self) -> &'static str {
        match self {
            How::Native => "native",
            How::Rebound => "rebound",
            How::Host => "host",
        }
    }
}

/// Key of a row: file, line, operation, how.
type Key = (String, i32, String, How);

/// All counts so far.
#[derive(Default)]
pub(crate) struct Report {
    rows: BTreeMap<Key, (u64, u64, f64)>,
}

/// One row for Python: file, line, operation, how, calls, bytes gathered, seconds.
pub(crate) type Row = (String, i32, String, &'static str, u64, u64, f64);

impl Report {
    /// Counts a call at the running line.
    pub(crate) fn note(&mut self, py: Python<'_>, operation: &str, how: How, bytes: u64, seconds: f64) {
        let (file, line) = user_line(py).unwrap_or_default();
        let row = self.rows.entry((file, line, operation.to_owned(), how)).or_default();
        row.0 += 1;
        row.1 += bytes;
        row.2 += seconds;
    }

    /// All rows, sorted by file and line.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.rows
            .iter()
            .map(|((file, line, operation, how), (calls, bytes, seconds))| {
                (file.clone(), *line, operation.clone(), how.word(), *calls, *bytes, *seconds)
            })
            .collect()
    }
}

/// File and line of the user's code that is running.
fn user_line(py: Python<'_>) -> Option<(String, i32)> {
    let frame = intercept::user_frame(py)?;
    let line = frame.getattr("f_lineno").ok()?.extract().ok()?;
    let file = frame.getattr("f_code").ok()?.getattr("co_filename").ok()?.extract().ok()?;
    Some((file, line))
}

//! Recorded programs: their launches with every number as a polynomial in the program's size `n`, read from text.
//!
//! The texts are what `scripts/scale --record` made of a program's launches at three sizes: the form of `legate_runtime`'s recordings,
//! with numbers as `8`, `16n` or `8nn`, added up with `+`. Plays them on a runtime, at any size.

use std::collections::HashMap;
use std::sync::Arc;

use legate_runtime::view::{Axes, View};
use legate_runtime::{Handle, Operand, Privilege, Runtime, Work};

use crate::nothing::Nothing;

/// `p[0] + p[1] n + p[2] n n`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Polynomial([i64; 3]);

impl Polynomial {
    fn parse(text: &str) -> Polynomial {
        let mut factors = [0; 3];
        for term in text.split('+') {
            let number = term.trim_end_matches('n');
            let factor: i64 = number.parse().unwrap_or_else(|_| panic!("{text} is no polynomial"));
            factors[term.len() - number.len()] += factor;
        }
        Polynomial(factors)
    }

    fn list(text: &str) -> Axes<Polynomial> {
        text.split(',').filter(|part| *part != "-").map(Polynomial::parse).collect()
    }

    fn at(self, n: i64) -> i64 {
        self.0[0] + n * (self.0[1] + n * self.0[2])
    }
}

struct Walk {
    privilege: Privilege,
    field: u64,
    held: bool,
    bytes: Polynomial,
    item_bytes: Polynomial,
    offset: Polynomial,
    strides: Axes<Polynomial>,
}

struct Recorded {
    name: Arc<str>,
    work: Work,
    domain: Axes<Polynomial>,
    operands: Vec<Walk>,
}

/// The launches of a program, window by window.
pub(crate) struct Program {
    windows: Vec<Vec<Recorded>>,
    /// The last window that touches each field.
    last: HashMap<u64, usize>,
}

fn work_of(text: &str) -> Work {
    let plain = [
        ("Map", Work::Map),
        ("Total", Work::Total),
        ("Accumulate", Work::Accumulate),
        ("Rows", Work::Rows),
        ("Scan{along_rows:false}", Work::Scan { along_rows: false }),
        ("Scan{along_rows:true}", Work::Scan { along_rows: true }),
        ("Whole", Work::Whole),
    ];
    let axes = || text.strip_prefix("Fold{axes:")?.strip_suffix('}')?.parse().ok();
    let exchange = || {
        let (along, unit) = text.strip_prefix("Exchange{along:")?.strip_suffix('}')?.split_once(",unit:")?;
        Some(Work::Exchange { along: along.parse().ok()?, unit: unit.parse().ok()? })
    };
    let found = plain.iter().find(|(name, _)| *name == text).map(|(_, work)| *work);
    found
        .or_else(|| axes().map(|axes| Work::Fold { axes }))
        .or_else(exchange)
        .unwrap_or_else(|| panic!("{text} is no work"))
}

impl Program {
    /// Reads a recording.
    pub(crate) fn parse(text: &str) -> Program {
        let mut windows: Vec<Vec<Recorded>> = Vec::new();
        let mut last = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let privilege = match words.first() {
                Some(&"<") => Privilege::Read,
                Some(&">") => Privilege::Write,
                Some(&"<>") => Privilege::ReadWrite,
                Some(&"window") => {
                    windows.push(Vec::new());
                    continue;
                }
                Some(name) => {
                    let (work, domain) = (work_of(words[1]), Polynomial::list(words[2]));
                    let recorded = Recorded { name: (*name).into(), work, domain, operands: Vec::new() };
                    windows.last_mut().expect("a window comes first").push(recorded);
                    continue;
                }
                None => continue,
            };
            let field: u64 = words[1].trim_end_matches('!').parse().expect("fields have numbers");
            last.insert(field, windows.len() - 1);
            let walk = Walk {
                privilege,
                field,
                held: words[1].ends_with('!'),
                bytes: Polynomial::parse(words[2]),
                item_bytes: Polynomial::parse(words[3]),
                offset: Polynomial::parse(words[4]),
                strides: Polynomial::list(words[5]),
            };
            let launch = windows.last_mut().and_then(|window| window.last_mut()).expect("a launch comes first");
            launch.operands.push(walk);
        }
        Program { windows, last }
    }

    /// Number of launches.
    pub(crate) fn launches(&self) -> usize {
        self.windows.iter().map(Vec::len).sum()
    }

    /// Issues all launches at a size, with fields of their own, and waits at the end of each window.
    pub(crate) fn play(&self, n: i64, runtime: &Runtime<Nothing>, wait: &dyn Fn(&Runtime<Nothing>)) {
        let mut handles: HashMap<u64, Handle> = HashMap::new();
        for (number, window) in self.windows.iter().enumerate() {
            let mut dropped = Vec::new();
            for launch in window {
                let operands = launch.operands.iter().map(|walk| {
                    let bytes = walk.bytes.at(n) as usize;
                    let handle = handles
                        .entry(walk.field)
                        .or_insert_with(|| runtime.field(bytes).expect("fields have no memory until it is written"));
                    if !walk.held {
                        dropped.push(walk.field);
                    }
                    let view = View {
                        offset: walk.offset.at(n) as isize,
                        strides: walk.strides.iter().map(|stride| stride.at(n) as isize).collect(),
                        item_bytes: walk.item_bytes.at(n) as usize,
                    };
                    Operand { field: handle.field().clone(), view, privilege: walk.privilege }
                });
                let operands = operands.collect();
                let domain = launch.domain.iter().map(|length| length.at(n) as usize).collect();
                runtime.launch(launch.name.clone(), launch.work, domain, operands, ());
            }
            for field in dropped {
                handles.remove(&field);
            }
            wait(runtime);
            handles.retain(|field, _| self.last[field] > number);
        }
    }
}

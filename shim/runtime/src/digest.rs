//! The running digest of what the shards do together: launches, agreements, and the user's line for each.
//!
//! Two shards that have done the same things have the same digest after each of them, so that comparing one number finds any
//! difference, and the numbers kept find where it began. Keeps the latest [`KEPT`] operations; says nothing of older ones.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHasher;

/// Operations kept: far more than one shard gets ahead of another between two comparisons.
const KEPT: usize = 16_384;

/// A place in the user's program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line.
    pub line: u32,
}

/// One operation.
#[derive(Clone, Debug)]
struct Entry {
    name: Arc<str>,
    shape: Arc<[usize]>,
    place: Option<Arc<Place>>,
    /// The digest with this operation and all before it.
    digest: u64,
}

/// The digest of one shard.
#[derive(Debug, Default)]
pub struct Digest(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Operations so far.
    count: u64,
    digest: u64,
    latest: VecDeque<Entry>,
}

impl State {
    fn entry(&self, number: u64) -> Option<&Entry> {
        let back = usize::try_from(self.count.checked_sub(number)?).ok()?;
        self.latest.get(self.latest.len().checked_sub(back + 1)?)
    }
}

impl Digest {
    /// Adds an operation: its name, the lengths of its domain, whatever else must be equal, and the user's line.
    pub fn note(&self, name: Arc<str>, shape: &[usize], more: impl Hash, place: Option<Arc<Place>>) {
        let mut state = self.0.lock();
        let mut hasher = FxHasher::default();
        (state.digest, &name, shape, more, &place).hash(&mut hasher);
        state.count += 1;
        state.digest = hasher.finish();
        if state.latest.len() == KEPT {
            state.latest.pop_front();
        }
        let digest = state.digest;
        state.latest.push_back(Entry { name, shape: shape.into(), place, digest });
    }

    /// Number of operations so far, and the digest of them all.
    pub fn now(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.count, state.digest)
    }

    /// The digest after operation `number` (the first is 1); none where it is not kept.
    pub fn after(&self, number: u64) -> Option<u64> {
        Some(self.0.lock().entry(number)?.digest)
    }

    /// The digests after the latest operations up to `number`, at most `most` of them, and the number of the first.
    pub fn before(&self, number: u64, most: usize) -> (u64, Vec<u64>) {
        let state = self.0.lock();
        let last = number.min(state.count);
        let kept = state.latest.len() as u64 - (state.count - last).min(state.latest.len() as u64);
        let first = last + 1 - kept.min(most as u64);
        (first, (first..=last).filter_map(|number| Some(state.entry(number)?.digest)).collect())
    }

    /// Operation `number` for people: `add [100] at app.py:7`.
    pub fn describe(&self, number: u64) -> String {
        let state = self.0.lock();
        if number == 0 {
            return "nothing yet".to_owned();
        }
        let Some(entry) = state.entry(number) else {
            return if number > state.count { "nothing more".to_owned() } else { format!("operation {number}") };
        };
        let mut text = entry.name.to_string();
        if !entry.shape.is_empty() {
            text += &format!(" {:?}", entry.shape);
        }
        if let Some(place) = &entry.place {
            text += &format!(" at {}:{}", place.file, place.line);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, KEPT, Place};
    use std::sync::Arc;

    fn add(digest: &Digest, name: &str, line: u32) {
        digest.note(name.into(), &[4], 1, Some(Arc::new(Place { file: "app.py".into(), line })));
    }

    #[test]
    fn order_name_and_line_count() {
        let [one, two, three] = [(); 3].map(|()| Digest::default());
        for digest in [&one, &two, &three] {
            add(digest, "add", 1);
        }
        add(&one, "add", 2);
        add(&two, "add", 3);
        add(&three, "multiply", 2);
        assert!(one.after(1) == two.after(1) && one.after(1) == three.after(1));
        assert!(one.after(2) != two.after(2) && one.after(2) != three.after(2));
        assert_eq!(one.now(), (2, one.after(2).expect("kept")));
        assert_eq!(two.describe(2), "add [4] at app.py:3");
        assert_eq!(two.describe(3), "nothing more");
        assert_eq!(two.before(2, 10), (1, vec![two.after(1).expect("kept"), two.after(2).expect("kept")]));
        assert_eq!(two.before(2, 1), (2, vec![two.after(2).expect("kept")]));
    }

    #[test]
    fn only_the_latest_are_kept() {
        let digest = Digest::default();
        let ops = KEPT as u64 + 10;
        (0..ops).for_each(|_| add(&digest, "add", 1));
        assert_eq!(digest.after(10), None);
        assert!(digest.after(11).is_some() && digest.after(ops).is_some());
        assert_eq!(digest.before(20, 100).0, 11);
        assert_eq!(digest.before(20, 100).1.len(), 10);
        assert_eq!(digest.before(5, 100), (6, vec![]));
    }
}

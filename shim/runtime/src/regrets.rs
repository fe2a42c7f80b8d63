//! Regrets: what kinds of results turned out to be asked for after they had not been stored.
//!
//! A result that costs about as much to make again as to store (`Effort::Storing`) is better not stored where nobody asks for it, and
//! better stored where somebody does. Programs do the same in loops, so what became of results of a kind - made by launches of the
//! same names over the same domains - tells what will become of the next one. Only what is stored depends on this.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::launch::Launch;

/// How much oftener results of a kind may be asked for than forgotten: a window that closes amid an iteration asks for one.
const TOLERATED: i32 = 1;

/// Launches of the same names over the same domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind(u64);

impl Kind {
    pub(crate) fn of<'a, T: 'a>(launches: impl Iterator<Item = &'a Launch<T>>) -> Kind {
        let mut hasher = FxHasher::default();
        launches.for_each(|launch| (&launch.name, &launch.domain).hash(&mut hasher));
        Kind(hasher.finish())
    }
}

/// For each kind, how much oftener its results were asked for than forgotten.
#[derive(Default)]
pub(crate) struct Regrets(FxHashMap<Kind, i32>);

impl Regrets {
    /// A result was asked for, or is forgotten.
    pub(crate) fn note(&mut self, kind: Kind, asked: bool) {
        *self.0.entry(kind).or_default() += if asked { 1 } else { -1 };
    }

    /// Whether results of a kind are to be stored.
    pub(crate) fn know(&self, kind: Kind) -> bool {
        self.0.get(&kind).is_some_and(|asked| *asked > TOLERATED)
    }
}

//! Draws of fixed consumption on engines without jumps: workers claim stretches, and fill the items that those hold.
//!
//! Nothing is parsed twice and nobody waits, since the items of a stretch are known when it is claimed.

#![expect(unsafe_code, reason = "passes the caller's memory on")]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::claims::Claims;
use super::engine::State;
use super::fixed::Fixed;
use super::relay::Work;

/// See the file's head.
pub(super) struct Turns {
    draw: Box<dyn Fixed>,
    state: State,
    items: u64,
    items_each: u64,
    item_bytes: usize,
    claims: Claims,
    after: Mutex<Option<State>>,
}

impl Turns {
    /// A draw of `items` items from `state`, in stretches of `words_each` 64-bit words.
    pub(super) fn new(draw: Box<dyn Fixed>, item_bytes: usize, state: State, items: u64, words_each: u64) -> Turns {
        let engine = state.engine.clone();
        let natural_words = words_each * 8 / engine.word_bytes();
        let items_each = words_each * 8 / draw.unit_bytes() * draw.items_each_unit();
        let after = (items == 0).then(|| state.clone());
        let claims = Claims::new(engine, natural_words);
        Turns { draw, state, items, items_each, item_bytes, claims, after: Mutex::new(after) }
    }

    /// Items before those of stretch `number`. The waiting half word's items belong to the first stretch.
    fn items_before(&self, number: u64) -> u64 {
        match number {
            0 => 0,
            _ => {
                let spare = self.state.spare_units(self.draw.unit_bytes()) * self.draw.items_each_unit();
                (spare + number * self.items_each).min(self.items)
            }
        }
    }
}

impl Work for Turns {
    unsafe fn work(&self, out: *mut u8, kept: &Range<u64>) {
        loop {
            let claim = self.claims.next();
            let range = self.items_before(claim.number)..self.items_before(claim.number + 1);
            if range.is_empty() {
                return;
            }
            if range.end == self.items {
                let units = self.draw.units(self.items);
                let after = self.state.after(units, self.draw.unit_bytes(), &claim.engine, claim.words_before);
                *self.after.lock().unwrap_or_else(PoisonError::into_inner) = Some(after);
            }
            let range = range.start.max(kept.start)..range.end.min(kept.end);
            if range.is_empty() {
                continue;
            }
            let mut reader = self.draw.reader(&self.state, &claim.engine, claim.words_before, range.start);
            // SAFETY: `work`'s promise; these items are this stretch's alone.
            unsafe {
                let place = out.add(range.start as usize * self.item_bytes);
                self.draw.fill(&mut *reader, (range.end - range.start) as usize, place);
            }
        }
    }

    fn after(&self) -> Option<State> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! Which temporaries of a program lie in the same memory.
//!
//! Promises that no pass finds two temporaries in one place between the first and the last pass that touches either. The fewer
//! bytes a row needs, the more rows a chunk has. Knows nothing of how chunks are run.

use std::ops::RangeInclusive;

use super::{Memory, Program};

impl Program {
    /// Lets temporaries with rows of the same size take turns, and forgets those that no pass touches.
    pub(crate) fn share_slots(&mut self) {
        // For each slot: the passes from its first touch to its last, and whether every touch is of the chunk's own rows.
        let mut lives: Vec<Option<(RangeInclusive<usize>, bool)>> = vec![None; self.slots.len()];
        for (number, pass) in self.passes.iter().enumerate() {
            for access in &pass.accesses {
                let Memory::Slot(slot) = access.memory else { continue };
                let (first, by_rows) = lives[slot].as_ref().map_or((number, true), |(life, own)| (*life.start(), *own));
                lives[slot] = Some((first..=number, by_rows && access.row_stride != 0));
            }
        }
        let mut shared: Vec<(usize, Option<usize>)> = Vec::new();
        let mut places = vec![0; self.slots.len()];
        let mut order: Vec<usize> = (0..self.slots.len()).filter(|slot| lives[*slot].is_some()).collect();
        order.sort_by_key(|slot| lives[*slot].as_ref().map(|(life, _)| *life.start()));
        for slot in order {
            let Some((life, by_rows)) = &lives[slot] else { continue };
            let bytes = self.slots[slot];
            let is_free = |(size, last): &(usize, Option<usize>)| {
                *by_rows && *size == bytes && last.is_some_and(|last| last < *life.start())
            };
            let place = shared.iter().position(is_free).unwrap_or_else(|| {
                shared.push((bytes, None));
                shared.len() - 1
            });
            shared[place].1 = by_rows.then_some(*life.end());
            places[slot] = place;
        }
        for access in self.passes.iter_mut().flat_map(|pass| &mut pass.accesses) {
            if let Memory::Slot(slot) = &mut access.memory {
                *slot = places[*slot];
            }
        }
        self.slots = shared.into_iter().map(|(bytes, _)| bytes).collect();
    }
}

#[cfg(test)]
mod tests {
    use smallvec::{SmallVec, smallvec};

    use crate::program::{Access, Memory, Pass, Program, Split};

    /// A program whose passes touch these slots, given with their row strides, of 8 bytes a row but for the last slot.
    fn program(passes: &[&[(usize, isize)]]) -> Program {
        let access = |(slot, row_stride): &(usize, isize)| Access {
            memory: Memory::Slot(*slot),
            offset: 0,
            row_stride: *row_stride,
            inner_strides: SmallVec::new(),
            item_bytes: 8,
            aligned: true,
        };
        let pass = |slots: &&[(usize, isize)]| Pass {
            rows: 0..9,
            inner: smallvec![],
            accesses: slots.iter().map(access).collect(),
            registers: Vec::new(),
            steps: Vec::new(),
        };
        Program {
            rows: 9,
            buffers: 0,
            read_soon: Vec::new(),
            slots: vec![8, 8, 8, 8, 16],
            constants: Vec::new(),
            totals: Vec::new(),
            flags: 0,
            split: Split::Rows,
            passes: passes.iter().map(pass).collect(),
        }
    }

    fn shared(passes: &[&[(usize, isize)]]) -> (Vec<usize>, Vec<Vec<usize>>) {
        let mut program = program(passes);
        program.share_slots();
        let slot = |access: &Access| match access.memory {
            Memory::Slot(slot) => slot,
            Memory::Buffer(_) | Memory::Constant(_) => usize::MAX,
        };
        (program.slots, program.passes.iter().map(|pass| pass.accesses.iter().map(slot).collect()).collect())
    }

    #[test]
    fn a_slot_that_is_needed_no_more_serves_the_next() {
        let (slots, passes) = shared(&[&[(0, 8)], &[(0, 8), (1, 8)], &[(1, 8), (2, 8)], &[(2, 8), (4, 16)]]);
        assert_eq!((slots, passes), (vec![8, 8, 16], vec![vec![0], vec![0, 1], vec![1, 0], vec![0, 2]]));
    }

    #[test]
    fn a_slot_that_is_read_again_later_keeps_its_place() {
        let (slots, passes) = shared(&[&[(3, 8)], &[(1, 8)], &[(2, 8)], &[(3, 8), (2, 8)]]);
        assert_eq!((slots, passes), (vec![8, 8], vec![vec![0], vec![1], vec![1], vec![0, 1]]));
        assert_eq!(shared(&[&[], &[]]).0, Vec::<usize>::new());
    }

    #[test]
    fn what_all_rows_share_lives_from_chunk_to_chunk() {
        let (slots, passes) = shared(&[&[(0, 0)], &[(1, 8)], &[(2, 0)], &[(3, 8)]]);
        assert_eq!((slots, passes), (vec![8, 8, 8], vec![vec![0], vec![1], vec![2], vec![1]]));
    }
}

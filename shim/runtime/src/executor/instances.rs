//! The instances that a group works on: its buffers' memory, and second instances with what they carry over of the first.
//!
//! Does not put second instances in the place of the first: whoever runs the group does, once it is done.
#![expect(unsafe_code, reason = "copies bytes between instances")]

use std::ops::Range;

use super::Executor;
use crate::group::{Buffer, Group};
use crate::launch::Backend;
use crate::pool::Block;

impl<B: Backend> Executor<B> {
    /// Where a group's buffers begin. New second instances, with the bytes that no member will write as far as `needed` says, go to
    /// `second` with their buffers' indices.
    pub(super) fn addresses(
        &self,
        group: &Group<B::Task>,
        second: &mut Vec<(usize, Block)>,
        needed: impl Fn(usize) -> Option<Vec<Range<usize>>>,
    ) -> Vec<usize> {
        let address = |(index, buffer): (usize, &Buffer)| {
            if !buffer.second {
                return buffer.field.materialize();
            }
            let block = self.second_instance(buffer, needed(index).as_deref());
            let address = block.address();
            second.push((index, block));
            address
        };
        group.buffers.iter().enumerate().map(address).collect()
    }

    /// A second instance of a field, with the bytes that no member will write; with several shards, those that are needed here.
    fn second_instance(&self, buffer: &Buffer, needed: Option<&[Range<usize>]>) -> Block {
        let block = self.pool.take(buffer.field.bytes());
        let old = buffer.field.materialize();
        let all = 0..buffer.field.bytes();
        let Some(carried) = &buffer.carried else { return block };
        let needed = needed.unwrap_or(std::slice::from_ref(&all));
        let ranges = needed.iter().flat_map(|part| carried.within(part));
        for range in ranges.filter(|_| self.transport.carries()) {
            // SAFETY: both instances hold `field.bytes()` bytes and the needed parts lie within them; they are different
            // blocks, and only the holder of the running role touches either.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    (old + range.start) as *const u8,
                    (block.address() + range.start) as *mut u8,
                    range.len(),
                );
            }
        }
        block
    }
}

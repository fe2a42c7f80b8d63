//! Parts: which bytes of a field are a shard's to fill or to write out, outside of any group.
//!
//! The same arithmetic as for groups, so that what is filled by parts lives where results of that size do. Sends nothing.

use std::ops::Range;

use super::home::RowCut;
use crate::field::Field;
use crate::partition::Partition;
use crate::transport::Transport;

/// Has a field that nobody has written live in natural parts of whole rows; the bytes that live here.
pub(crate) fn share_out(field: &Field, row_bytes: usize, item_bytes: usize, transport: &dyn Transport) -> Range<usize> {
    let (items, grain) = (field.bytes() / item_bytes, row_bytes / item_bytes);
    let cut = RowCut::natural(items, grain, transport.shards());
    match cut.home(item_bytes as isize, &(0..item_bytes as isize), 0) {
        Some(home) => {
            field.layout().write(home, &(0..field.bytes() as isize));
            home.range(transport.shard(), field.bytes())
        }
        None => 0..field.bytes(),
    }
}

/// The part of a range of a field's bytes that lives here, or an even part of it where every shard has all.
pub(crate) fn own_part(field: &Field, bytes: &Range<usize>, transport: &dyn Transport) -> Range<usize> {
    let own = match field.layout().home() {
        Some(home) => home.range(transport.shard(), field.bytes()),
        None => {
            let even = Partition { length: bytes.len(), colours: transport.shards() }.tile(transport.shard());
            bytes.start + even.start..bytes.start + even.end
        }
    };
    let start = own.start.clamp(bytes.start, bytes.end);
    start..own.end.clamp(start, bytes.end)
}

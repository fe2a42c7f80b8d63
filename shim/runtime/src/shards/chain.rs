//! Chains: sums over the rows of a group, whose order is serial by nature.
//!
//! Each shard takes the sums so far from the one before it, goes on with its own rows, and hands them on; columns go in blocks, so
//! that the next shard begins while this one still works on the rest. The last shard's sums are everybody's result.
#![expect(unsafe_code, reason = "hands on parts of fields")]

use std::ops::Range;

use super::home::Home;
use super::moves::{Moves, Traffic};
use super::runs::add_runs;
use super::share;
use super::walk::{Walk, bytes_of};
use crate::group::{Group, Place};
use crate::launch::{Operand, Privilege};
use crate::partition::Partition;
use crate::transport::{Transport, TransportError};

/// Blocks of columns that are under way at the same time: enough for neighbours to overlap, few enough to stay long.
pub(crate) const BLOCKS: usize = 4;

/// The outputs of a group's folds over rows.
fn outputs<T>(group: &Group<T>) -> impl Iterator<Item = (Walk<'_>, &Operand, Place)> {
    group.members.iter().filter(|member| member.launch.folds_rows()).flat_map(|member| {
        let places = member.launch.operands.iter().zip(&member.places);
        let folded = places.filter(|(operand, _)| operand.privilege.writes() && operand.view.row_stride() == 0);
        folded.map(|(operand, place)| (Walk::new(member, operand), operand, *place))
    })
}

/// Whether the sums can be handed on: they start anew, and live nowhere yet.
pub(crate) fn is_possible<T>(group: &Group<T>) -> bool {
    outputs(group).all(|(walk, operand, _)| {
        operand.privilege == Privilege::Write && walk.shift == 0 && walk.field().layout().home().is_none()
    })
}

/// Receives from the shard before, or sends to the one behind, the sums of a range of the first inner axis (of all, if None).
pub(crate) fn hand_on<T>(
    group: &Group<T>,
    inner: Option<&Range<usize>>,
    receives: bool,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let stored = outputs(group).filter(|(_, _, place)| matches!(place, Place::Buffer(_)));
    hand(stored.map(|(walk, ..)| walk), 0, inner, receives, transport, traffic)
}

/// Receives from the shard before, or sends to the one behind, a row of what a launch of running totals writes, in a range of the
/// first inner axis (in all, if None).
pub(crate) fn hand_row<T>(
    group: &Group<T>,
    row: usize,
    inner: Option<&Range<usize>>,
    receives: bool,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let member = &group.members[0];
    let written = member.launch.operands.iter().filter(|operand| operand.privilege.writes());
    hand(written.map(|operand| Walk::new(member, operand)), row, inner, receives, transport, traffic)
}

/// Receives from the shard before, or sends to the one behind, a row of each walk, in a range of the first inner axis (in all, if
/// None).
fn hand<'a>(
    walks: impl Iterator<Item = Walk<'a>>,
    row: usize,
    inner: Option<&Range<usize>>,
    receives: bool,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    if if receives { shard == 0 } else { shard + 1 == shards } {
        return Ok(());
    }
    let mut moves = Moves::default();
    for walk in walks {
        let (mut view, mut domain) = walk.part(&(row..row + 1));
        if let Some(inner) = inner {
            view.offset += inner.start as isize * view.strides[1];
            domain[1] = inner.len();
        }
        let field = walk.field();
        let mut runs = Vec::new();
        add_runs(&view, &domain, &(0..field.bytes()), 0, &mut runs);
        let address = field.materialize();
        if receives { moves.receive(shard - 1, address, &runs) } else { moves.send(shard + 1, address, &runs) }
    }
    // SAFETY: only the holder of the running role touches these fields, and no tile of this range runs now.
    unsafe { moves.hand_on(transport, traffic) }
}

/// Gives every shard the sums, which the last one holds.
pub(crate) fn publish<T>(group: &Group<T>, transport: &dyn Transport, traffic: &Traffic) -> Result<(), TransportError> {
    for (walk, _, place) in outputs(group) {
        if !matches!(place, Place::Buffer(_)) {
            continue;
        }
        let field = walk.field();
        let last =
            Home { tiles: Partition { length: 1, colours: transport.shards() }, row_bytes: field.bytes(), start: 0 };
        field.layout().write(last, &walk.extent);
        share::gather(field, &bytes_of(&walk.extent), transport, traffic)?;
    }
    Ok(())
}

//! Deep halos: how joined sweeps are shared out, and the one exchange before all of them.
//!
//! Each shard makes its own rows of the last sweep, and of the ones before as many more as the later ones read there: the neighbour
//! makes those too. So all that goes from shard to shard are rows of the field's old values and of what else the sweeps read, once.
//! Decided from views and layouts alone: what a shard stores on its way decides nothing.

use std::ops::Range;

use smallvec::smallvec;

use super::home::{Home, Margin, RowCut};
use super::moves::Traffic;
use super::share::{self, Share, folds_rows, homes_after};
use super::walk::Walk;
use crate::field::Field;
use crate::group::Group;
use crate::launch::{Operand, Privilege};
use crate::sweeps::{Stage, Sweeps};
use crate::transport::{Transport, TransportError};
use crate::view::{Axes, View};

/// How many times as many rows as sweeps reach over a shard must have: what is made twice is little beside the rest.
const LEAST_REACHES: usize = 2;

/// A shard's part of joined sweeps.
pub(crate) struct Deep {
    /// The rows of the field that live here.
    pub(crate) tile: Range<isize>,
    /// For each sweep, its share of rows that live here.
    pub(crate) shares: Vec<Share>,
}

/// How sweeps are shared out; None where they are not, but run one after the other.
pub(crate) fn decide<T>(sweeps: &Sweeps<T>, transport: &dyn Transport) -> Option<Deep> {
    let home = sweeps.field.layout().home()?;
    let bytes = sweeps.field.bytes();
    let whole = home.row_bytes.is_multiple_of(sweeps.row_bytes)
        && bytes.is_multiple_of(sweeps.row_bytes)
        && home.start.rem_euclid(sweeps.row_bytes.cast_signed()) == 0;
    let tiles = home.tiles;
    let least = tiles.length / tiles.colours.max(1) * (home.row_bytes / sweeps.row_bytes);
    let (before, after) = sweeps.reach();
    let all = (bytes / sweeps.row_bytes).cast_signed();
    // Every shard has rows of every sweep, and no halo reaches past a neighbour.
    let reaches = |stage: &Stage<T>| {
        let rows = stage.rows();
        rows.start.max(all - rows.end) < least.cast_signed()
    };
    let most = before.max(after).cast_unsigned();
    if !whole || least < (LEAST_REACHES * most).max(1) || !sweeps.stages.iter().all(reaches) {
        return None;
    }
    let shares: Option<Vec<Share>> =
        sweeps.stages.iter().map(|stage| at_home(&stage.group, &sweeps.field, &home, transport)).collect();
    let own = home.range(transport.shard(), bytes);
    let row = |byte: usize| (byte / sweeps.row_bytes).cast_signed();
    Some(Deep { tile: row(own.start)..row(own.end), shares: shares? })
}

/// The share of a group whose second instance is that of a field which lives at `home`: every row is run where what it writes lives,
/// of all fields. None where that cannot be. Receives and sends nothing.
fn at_home<T>(group: &Group<T>, field: &Field, home: &Home, transport: &dyn Transport) -> Option<Share> {
    let walks = group.members.iter().flat_map(|member| member.launch.operands.iter().map(move |own| (member, own)));
    let writes = walks.filter(|(member, own)| own.privilege.writes() && !folds_rows(member, own));
    let written: Vec<Walk<'_>> = writes.map(|(member, operand)| Walk::new(member, operand)).collect();
    let own = written.iter().find(|walk| walk.field().number() == field.number())?;
    let cut = RowCut::following(home, own.view(), &own.row, own.shift, group.rows)?;
    let (cut, homes, away) = homes_after(group, &written, cut, transport.shards())?;
    let stays = homes.get(&field.number()) == Some(home) && away.is_empty();
    stays.then(|| Share { rows: cut.rows_of(transport.shard()), cut: Some(cut), homes, away })
}

/// Receives what the sweeps read of other shards' rows, and sends what others read of this one's.
pub(crate) fn begin<T>(
    sweeps: &Sweeps<T>,
    deep: &Deep,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let Some(home) = sweeps.field.layout().home() else { return Ok(()) };
    old_rows(sweeps, &home, transport, traffic)?;
    let (mut before, mut after) = (0, 0);
    for (stage, share) in sweeps.stages.iter().zip(&deep.shares).rev() {
        let rows = |count: isize| (count * stage.grain).cast_unsigned();
        let margin = Margin { before: rows(before), after: rows(after) };
        let operands =
            stage.group.members.iter().flat_map(|member| member.launch.operands.iter().map(move |own| (member, own)));
        let others = operands.filter(|(_, operand)| {
            operand.privilege != Privilege::Write && operand.field.number() != sweeps.field.number()
        });
        let read: Vec<Walk<'_>> = others.map(|(member, operand)| Walk::new(member, operand)).collect();
        if let Some(cut) = share.cut() {
            share::fetch(&read, &cut, margin, transport, traffic)?;
        }
        (before, after) = (before + stage.before, after + stage.after);
    }
    Ok(())
}

/// Exchanges whole rows of the field's old values, as many as all sweeps together reach over.
fn old_rows<T>(
    sweeps: &Sweeps<T>,
    home: &Home,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let view = View { offset: 0, strides: smallvec![sweeps.row_bytes.cast_signed()], item_bytes: sweeps.row_bytes };
    let rows = sweeps.field.bytes() / sweeps.row_bytes;
    let domain: Axes<usize> = smallvec![rows];
    let (row, extent) = (view.row_extent(&domain), view.extent(&domain));
    let Some(cut) = RowCut::following(home, &view, &row, 0, rows) else { return Ok(()) };
    let operand = Operand { field: sweeps.field.clone(), view, privilege: Privilege::Read };
    let (before, after) = sweeps.reach();
    let margin = Margin { before: before.cast_unsigned(), after: after.cast_unsigned() };
    share::fetch(
        &[Walk { operand: &operand, domain: &domain, shift: 0, row, extent }],
        &cut,
        margin,
        transport,
        traffic,
    )
    .map(drop)
}

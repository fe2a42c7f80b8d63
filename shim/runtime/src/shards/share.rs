//! Shares: which rows of a group this shard runs, what it must receive and send before, and where results live after.
//!
//! Owner computes: rows are run where the largest written operand lives (unless it is slight beside the others), else where
//! the largest read one does, else they are shared out evenly. A group that cannot be cut by rows, or is small and touches nothing that lives somewhere, is run by every
//! shard on the whole. All of it follows from the group's shape and the layouts, which are the same on every shard; whether a
//! temporary is stored decides nothing.
#![expect(unsafe_code, reason = "runs exchanges of parts of fields")]

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::balance::{self, Balance};
use super::chain;
use super::collective::{self, Step};
use super::home::{Home, Margin, RowCut};
use super::moves::{self, Moves, Traffic};
use super::runs::{SMALL_GAP, add_runs, insert, without};
use super::walk::{Walk, bytes_of};
use crate::field::Field;
use crate::group::{Group, Member, Place, Split};
use crate::launch::{Operand, Privilege, Work};
use crate::mapper::Mapper;
use crate::transport::{Transport, TransportError};

/// How many times larger the rows of other operands must be for the rows of a written one to be written from afar.
const LIGHT: isize = 8;

/// This shard's part of a group.
pub(crate) struct Share {
    /// The rows that it runs.
    pub(crate) rows: Range<usize>,
    /// How rows are shared out; None when every shard runs all of them.
    pub(super) cut: Option<RowCut>,
    /// Where each written field lives afterwards, by its number.
    pub(super) homes: FxHashMap<u64, Home>,
    /// Fields that are written by shards where they do not live.
    pub(super) away: Vec<u64>,
}

impl Share {
    /// Whether every shard runs the whole group.
    pub(crate) fn is_whole(&self) -> bool {
        self.cut.is_none()
    }

    /// How rows are shared out; None when every shard runs all of them.
    pub(crate) fn cut(&self) -> Option<RowCut> {
        self.cut
    }

    /// The rows that neighbouring shards run together.
    pub(crate) fn rows_of(&self, shards: &Range<usize>) -> Range<usize> {
        self.cut.map_or(self.rows.clone(), |cut| cut.rows_of(shards.start).start..cut.rows_of(shards.end - 1).end)
    }

    /// This shard's part of a group of maps that makes a field again, which this share has live somewhere; `None` where a shard
    /// could not make what lives there by itself. Once what the share's own group reads is here.
    pub(crate) fn apart<T>(&self, group: &Group<T>, field: &Field, shard: usize) -> Option<Share> {
        let mut walks = Vec::new();
        for member in &group.members {
            let operands = member.launch.operands.iter().zip(&member.places);
            let stored = operands.filter(|(_, place)| matches!(place, Place::Buffer(_)));
            walks.extend(stored.map(|(operand, _)| Walk::new(member, operand)));
        }
        let cut = match self.homes.get(&field.number()) {
            Some(home) => {
                let made = walks.iter().find(|walk| walk.operand.privilege.writes())?;
                Some(RowCut::following(home, made.view(), &made.row, made.shift, group.rows)?)
            }
            None if self.is_whole() => None,
            None => return None,
        };
        let is_here = |walk: &Walk<'_>| {
            let layout = walk.field().layout();
            let own = self.homes.get(&walk.field().number()).copied();
            let everywhere = own.is_none() && layout.is_everywhere(&walk.bytes());
            everywhere
                || cut.is_some_and(|cut| {
                    let lives = own.or(layout.home());
                    lives.is_some() && cut.home(walk.pitch(), &walk.row, walk.shift) == lives
                })
        };
        if group.split != Split::Rows || !walks.iter().all(is_here) {
            return None;
        }
        let rows = cut.map_or(0..group.rows, |cut| cut.rows_of(shard));
        Some(Share { rows, cut, homes: FxHashMap::default(), away: Vec::new() })
    }

    /// The bytes that this shard's second instance of buffer `index` needs of the first: what lives here after the group, and
    /// what its rows read.
    pub(crate) fn carries<T>(&self, group: &Group<T>, index: usize, transport: &dyn Transport) -> Vec<Range<usize>> {
        let field = &group.buffers[index].field;
        let home = self.homes.get(&field.number());
        let mut ranges = vec![home.map_or(0..field.bytes(), |home| home.range(transport.shard(), field.bytes()))];
        for member in &group.members {
            for (operand, place) in member.launch.operands.iter().zip(&member.places) {
                if *place == Place::Buffer(index) && operand.privilege != Privilege::Write {
                    let (view, domain) = Walk::new(member, operand).part(&self.rows);
                    insert(&mut ranges, bytes_of(&view.extent(&domain)));
                }
            }
        }
        ranges
    }
}

/// Whether the walk is the output of a fold over the group's rows: a total, which every shard works out, or a sum over the rows.
pub(super) fn folds_rows<T>(member: &Member<T>, operand: &Operand) -> bool {
    operand.privilege.writes()
        && (member.launch.work == Work::Total || (member.launch.folds_rows() && operand.view.row_stride() == 0))
}

/// Where a field should live after a group has written a walk of it, and whether it must; None where it may live anywhere. Only
/// what lives somewhere already must stay there: a field that is new may be a temporary, which is not stored on every shard.
fn wanted_home(walk: &Walk<'_>, shards: usize) -> Option<(Home, bool)> {
    let field = walk.field();
    let covered = walk.view().covered_bytes(walk.domain);
    if let Some(home) = field.layout().home() {
        let replaced = covered == field.bytes() && walk.operand.privilege == Privilege::Write;
        return (!replaced).then_some((home, true));
    }
    let stride = walk.view().row_stride();
    if covered * 4 >= field.bytes() * 3 || stride <= 0 {
        return None;
    }
    // Part of a new field: all of it is shared out evenly.
    let cut = RowCut::natural(field.bytes() / stride as usize, 1, shards);
    cut.home(stride, &(0..stride), 0).map(|home| (home, false))
}

/// Decides the share of a group, receives what this shard's rows read, and sends what others' rows read of it.
pub(crate) fn begin<T>(
    group: &Group<T>,
    mapper: &Mapper,
    balance: &Balance,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<Share, TransportError> {
    let mut written = Vec::new();
    let mut read = Vec::new();
    for member in &group.members {
        for (operand, place) in member.launch.operands.iter().zip(&member.places).take(member.launch.along()) {
            let walk = Walk::new(member, operand);
            if operand.privilege.writes() && !folds_rows(member, operand) {
                written.push(Walk::new(member, operand));
            }
            if operand.privilege != Privilege::Write && matches!(place, Place::Buffer(_)) {
                read.push(walk);
            }
        }
    }
    let shards = transport.shards();
    let (elements, work) = (group.largest(), group.work());
    let stays_whole = balance.keeps_whole(elements);
    if stays_whole {
        for operand in group.operands() {
            gather(&operand.field, &(0..operand.field.bytes()), transport, traffic)?;
        }
    }
    // Beside what it exchanges, a small launch takes a step: the program waits for it, or might have done the work itself meanwhile.
    let is_spread = |operand: &Operand| operand.field.layout().home().is_some();
    let small = usize::from(work < mapper.min_tile && group.operands().any(is_spread));
    let share = decide(group, &written, &read, mapper, stays_whole, shards);
    let Some(share) =
        share.map(|(cut, homes, away)| Share { rows: cut.rows_of(transport.shard()), cut: Some(cut), homes, away })
    else {
        let mut steps = small + balance::steps_of_others(group, shards);
        for walk in &read {
            steps += gather(walk.field(), &walk.bytes(), transport, traffic)?;
        }
        for buffer in group.buffers.iter().filter(|buffer| buffer.second) {
            steps += gather(&buffer.field, &(0..buffer.field.bytes()), transport, traffic)?;
        }
        balance.note(elements, if stays_whole { work - work / shards } else { 0 }, steps);
        return Ok(Share { rows: 0..group.rows, cut: None, homes: FxHashMap::default(), away: Vec::new() });
    };
    if let Some(cut) = &share.cut {
        let steps = fetch(&read, cut, Margin::default(), transport, traffic)?;
        let later = usize::from(!share.away.is_empty()) + balance::steps_within(group, shards);
        balance.note(elements, work - work / shards, small + steps + later);
    }
    Ok(share)
}

/// A walk is thin if it reaches over this many bytes for each that it touches.
const THIN: usize = 8;

type Decision = (RowCut, FxHashMap<u64, Home>, Vec<u64>);

/// How a group is shared out; None when every shard runs all of it.
fn decide<T>(
    group: &Group<T>,
    written: &[Walk<'_>],
    read: &[Walk<'_>],
    mapper: &Mapper,
    stays_whole: bool,
    shards: usize,
) -> Option<Decision> {
    let cuttable = group.split == Split::Rows || (group.serial && chain::is_possible(group));
    if !cuttable || group.rows < 2 {
        return None;
    }
    let apart = |walk: &&Walk<'_>| {
        let stride = walk.view().row_stride();
        walk.length() > 1 && (stride <= 0 || walk.row.end - walk.row.start > stride)
    };
    if written.iter().any(|walk| apart(&walk)) {
        return None;
    }
    let size = |walk: &&Walk<'_>| walk.extent.end - walk.extent.start;
    let elements = group.members.iter().map(|member| member.launch.domain.iter().product::<usize>()).max().unwrap_or(0);
    let follow = |walk: &Walk<'_>, home: &Home| RowCut::following(home, walk.view(), &walk.row, walk.shift, group.rows);
    let lives = written.iter().any(|walk| walk.field().layout().home().is_some());
    // Small work is done by everybody, and so is larger work on what everybody has: then everybody has the results. But what is
    // spread thinly over a large field is left to those where it lives: others would touch as many pages as the whole has.
    let known = read.iter().all(|walk| walk.field().layout().is_everywhere(&walk.bytes()));
    let small = elements < mapper.min_tile.max(2) && !written.iter().chain(read).any(|walk| is_thin(walk, mapper));
    if (small && (known || !lives)) || (known && !lives && (stays_whole || elements < mapper.min_spread(shards))) {
        return None;
    }
    let owner = written
        .iter()
        .filter_map(|walk| Some((size(&walk), follow(walk, &wanted_home(walk, shards)?.0)?)))
        .max_by_key(|(size, _)| *size);
    let homed = read.iter().filter(|walk| !walk.field().layout().is_everywhere(&walk.bytes()));
    let reader = homed
        .filter(|walk| walk.bytes().len() * 2 >= walk.field().bytes())
        .filter_map(|walk| Some((size(&walk), follow(walk, &walk.field().layout().home()?)?)))
        .max_by_key(|(size, _)| *size);
    let natural = RowCut::natural(group.rows, group.grain, shards);
    let fresh = written.iter().filter(|walk| wanted_home(walk, shards).is_none()).map(|walk| (size(&walk), natural));
    // What little is written elsewhere goes home: it does not draw the rows of large operands to where it lives.
    let bound = group.buffers.iter().any(|buffer| buffer.second);
    let light = |size: isize, other: Option<(isize, RowCut)>| other.is_some_and(|(other, _)| size * LIGHT < other);
    let others = reader.or_else(|| fresh.max_by_key(|(size, _)| *size));
    if let Some((_, cut)) = owner.filter(|(size, _)| bound || !light(*size, others)) {
        return homes_after(group, written, cut, shards);
    }
    // Single elements, evenly spaced, are written where they live.
    let elements = written.iter().find_map(|walk| {
        let (home, _) = wanted_home(walk, shards).filter(|_| walk.length() > 1)?;
        let cut = RowCut::of_elements(&home, walk.view(), &walk.row, walk.shift, group.rows)?;
        homes_after(group, written, cut, shards)
    });
    elements.or_else(|| homes_after(group, written, others.map_or(natural, |(_, cut)| cut), shards))
}

/// Whether a walk over part of a field that lives on several shards touches few of the bytes that it reaches over, which are many.
fn is_thin(walk: &Walk<'_>, mapper: &Mapper) -> bool {
    let reach = walk.bytes().len();
    reach >= mapper.min_tile * walk.view().item_bytes
        && walk.view().covered_bytes(walk.domain) < reach / THIN
        && !walk.field().layout().is_everywhere(&walk.bytes())
}

/// A cut with where each written field lives after it; None where that cannot be said, or a field's second instance would be written
/// where it does not live.
pub(super) fn homes_after<T>(group: &Group<T>, written: &[Walk<'_>], cut: RowCut, shards: usize) -> Option<Decision> {
    let mut homes: FxHashMap<u64, Home> = FxHashMap::default();
    let mut away = Vec::new();
    for walk in written {
        let number = walk.field().number();
        let here = cut.home(walk.pitch(), &walk.row, walk.shift);
        let wanted = homes.get(&number).map(|home| (*home, true)).or_else(|| wanted_home(walk, shards));
        let home = match (wanted, here) {
            (Some((home, true)), _) => home,
            (_, Some(here)) => here,
            (_, None) => return None,
        };
        if here != Some(home) && !away.contains(&number) {
            away.push(number);
        }
        homes.insert(number, home);
    }
    // A second instance is carried over by each shard for what lives there, so its rows must be run there.
    let moved = group.buffers.iter().any(|buffer| buffer.second && away.contains(&buffer.field.number()));
    (!moved).then_some((cut, homes, away))
}

/// Exchanges what the walks read, in the shards' rows with a margin, and do not find at home; the steps
/// that it takes, whoever they concern.
pub(super) fn fetch(
    read: &[Walk<'_>],
    cut: &RowCut,
    margin: Margin,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<usize, TransportError> {
    let mut steps = 0;
    let mut fields: Vec<(&Arc<Field>, Vec<&Walk<'_>>)> = Vec::new();
    for walk in read {
        let field = walk.field();
        {
            let layout = field.layout();
            let Some(home) = layout.home() else { continue };
            if walk.bytes().is_empty() || layout.is_everywhere(&walk.bytes()) {
                continue;
            }
            let at_home = walk.view().row_stride() != 0 && cut.home(walk.pitch(), &walk.row, walk.shift) == Some(home);
            if at_home && margin == Margin::default() {
                continue;
            }
            if layout.is_fetched(&walk.fetched(cut, margin)) {
                continue;
            }
        }
        if walk.view().row_stride() == 0 {
            steps += gather(field, &walk.bytes(), transport, traffic)?;
            continue;
        }
        match fields.iter_mut().find(|(known, _)| known.number() == field.number()) {
            Some((_, walks)) => walks.push(walk),
            None => fields.push((field, vec![walk])),
        }
    }
    steps += usize::from(!fields.is_empty());
    let mut moves = Moves::default();
    for (field, walks) in fields {
        let address = field.materialize();
        let mut layout = field.layout();
        let Some(home) = layout.home() else { continue };
        let shard = transport.shard();
        transfer(&walks, (cut, margin), &home, shard, field.bytes(), SMALL_GAP, |far, runs, sends| {
            let runs = without(runs, layout.shared());
            if sends { moves.send(far, address, &runs) } else { moves.receive(far, address, &runs) }
        });
        for walk in walks {
            layout.fetch(walk.fetched(cut, margin));
        }
    }
    // SAFETY: the executor's running role is the only one that touches instances; runs lie inside their fields, and what is
    // received lives elsewhere while what is sent lives here, so they do not overlap.
    unsafe { moves.run(transport, traffic)? };
    Ok(steps)
}

/// Visits what goes between this shard and each other one when shards need their rows of the walks, with a margin: the other shard, the runs
/// of the field, and whether this shard is the one where they live.
fn transfer(
    walks: &[&Walk<'_>],
    (cut, margin): (&RowCut, Margin),
    home: &Home,
    shard: usize,
    bytes: usize,
    gap: usize,
    mut visit: impl FnMut(usize, &[Range<usize>], bool),
) {
    let runs_of = |of: usize, clip: &Range<usize>| {
        let rows = margin.around(&cut.rows_of(of), cut.rows);
        let mut runs = Vec::new();
        // Both ends ask the same question, so that neither carries a gap that the other leaves out.
        for walk in walks.iter().filter(|walk| walk.shards_touching(clip, cut, margin).contains(&of)) {
            let (view, domain) = walk.part(&rows);
            add_runs(&view, &domain, clip, gap, &mut runs);
        }
        runs
    };
    // Ranges of shards, apart where the walks are: two rows at the ends of a field concern nobody between them.
    let mut takers = Vec::new();
    let mut givers = Vec::new();
    let own = home.range(shard, bytes);
    let rows = margin.around(&cut.rows_of(shard), cut.rows);
    for walk in walks {
        insert(&mut takers, walk.shards_touching(&own, cut, margin));
        let (view, domain) = walk.part(&rows);
        insert(&mut givers, home.shards_of(&bytes_of(&view.extent(&domain))));
    }
    for taker in takers.into_iter().flatten().filter(|taker| *taker != shard) {
        visit(taker, &runs_of(taker, &own), true);
    }
    for giver in givers.into_iter().flatten().filter(|giver| *giver != shard) {
        visit(giver, &runs_of(shard, &home.range(giver, bytes)), false);
    }
}

/// Notes where what the group wrote lives now, and brings home what was written elsewhere.
pub(crate) fn end<T>(
    group: &Group<T>,
    share: &Share,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let mut moves = Moves::default();
    let mut written: Vec<Walk<'_>> = Vec::new();
    let is_owed = |field: &Field| group.owed.iter().any(|owed| owed.field.number() == field.number());
    for member in &group.members {
        for (operand, place) in member.launch.operands.iter().zip(&member.places).take(member.launch.along()) {
            let lives = matches!(place, Place::Buffer(_)) || is_owed(&operand.field);
            if operand.privilege.writes() && lives && !folds_rows(member, operand) {
                written.push(Walk::new(member, operand));
            }
        }
    }
    let Some(cut) = &share.cut else {
        for walk in &written {
            if walk.view().covered_bytes(walk.domain) == walk.bytes().len() {
                walk.field().layout().gather(walk.bytes());
            }
        }
        return Ok(());
    };
    let mut pinned: Vec<(Arc<Field>, Range<usize>)> = Vec::new();
    let renewed = |number: u64| group.buffers.iter().any(|buffer| buffer.second && buffer.field.number() == number);
    for walk in &written {
        let field = walk.field();
        let Some(home) = share.homes.get(&field.number()) else { continue };
        let mut layout = field.layout();
        if field.is_pinned() {
            // Exported pointers look at what was everywhere, and must go on to find the newest values there.
            pinned.extend(layout.shared().iter().map(|range| (field.clone(), range.clone())));
        }
        if renewed(field.number()) {
            layout.renew(*home);
        } else {
            layout.write(*home, &walk.extent);
        }
    }
    for number in &share.away {
        let walks: Vec<&Walk<'_>> = written.iter().filter(|walk| walk.field().number() == *number).collect();
        let (Some(first), Some(home)) = (walks.first(), share.homes.get(number)) else { continue };
        let (field, shard) = (first.field(), transport.shard());
        let address = field.materialize();
        transfer(&walks, (cut, Margin::default()), home, shard, field.bytes(), 0, |far, runs, lives_here| {
            if lives_here { moves.receive(far, address, runs) } else { moves.send(far, address, runs) }
        });
    }
    // SAFETY: as in `fetch`; what is received lives here and was written by one other shard, what is sent lives elsewhere.
    unsafe { moves.run(transport, traffic)? };
    for (field, range) in pinned {
        gather(&field, &range, transport, traffic)?;
    }
    Ok(())
}

/// Gives every shard the newest values of a range of a field's bytes; the steps that it takes.
pub(crate) fn gather(
    field: &Arc<Field>,
    bytes: &Range<usize>,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<usize, TransportError> {
    let (home, missing) = {
        let layout = field.layout();
        let missing = layout.missing(bytes);
        match layout.home() {
            Some(home) if !missing.is_empty() => (home, missing),
            Some(_) | None => return Ok(0),
        }
    };
    let address = field.materialize();
    let part = |shards: &Range<usize>| {
        let low = home.edge(shards.start, field.bytes()).max(missing.start);
        let high = home.edge(shards.end, field.bytes()).min(missing.end);
        if low < high { Some(low..high) } else { None }
    };
    for Step { to, from, has, gets } in collective::steps(transport.shard(), transport.shards()) {
        let (sent, received) = (to.zip(part(&has)), from.zip(part(&gets)));
        // SAFETY: as in `fetch`; what is received lives at other shards than what is sent so far, except that a shard which
        // gets everything gets what it has once more, and sends nothing.
        unsafe { moves::swap(address, sent, received, transport, traffic)? };
    }
    let length = missing.len();
    field.layout().gather(missing);
    Ok(balance::steps_of_gather(length, transport.shards()))
}

/// In a forked child of a shard: refuses a group that reads what lives on other shards.
pub(crate) fn check_whole<T>(group: &Group<T>) -> Result<(), TransportError> {
    let operands = group.members.iter().flat_map(|member| member.launch.operands.iter().map(move |o| (member, o)));
    let mut read = operands.filter(|(_, operand)| operand.privilege != Privilege::Write);
    let missing = |(member, operand): (&Member<T>, &Operand)| {
        !operand.field.is_everywhere(&bytes_of(&operand.view.extent(&member.launch.domain)))
    };
    match read.any(missing) {
        false => Ok(()),
        true => Err(TransportError::Failed(
            "an array that is spread over several shards is not whole in a forked process".to_owned(),
        )),
    }
}

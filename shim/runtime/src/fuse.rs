//! Fusion: joins launches of a closed window into groups that are walked once.
//!
//! All members of a group share a row axis. A launch may join when every field that is written by one side is touched by
//! both in the same rows (then a chunk of rows can run through all members before the next chunk), or when it only
//! overwrites what earlier members read elsewhere (then it writes a second instance, and the two swap). Members that
//! also agree on every shared element form a pass. The decision depends on program order, shapes and views alone - and,
//! for what is stored, on liveness; it never looks at time or load. This file decides; it runs nothing. What a
//! group stores is `stored`'s.

mod align;
mod stored;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::carried::Carried;
use crate::group::{Buffer, Group, Member, Place, Split};
use crate::launch::{Launch, Operand, Privilege, Work};
use crate::owed::{Coming, Owed, Terms};
use crate::view::ranges_overlap;
use align::{add_row_axis, row_stride_of_next};

/// Longest group: past this, compiling costs more than another walk.
const MEMBERS_LIMIT: usize = 160;

/// One touch of a field by a member.
struct Touch {
    member: usize,
    operand: usize,
    writes: bool,
    shift: isize,
    extent: Range<isize>,
    row_extent: Range<isize>,
}

/// What may be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Whether anything is.
    pub(crate) joins: bool,
    /// Whether groups must be able to be cut into blocks: then all members agree on all axes, which stay apart.
    pub(crate) in_blocks: bool,
}

struct Draft<T> {
    members: Vec<Member<T>>,
    touches: FxHashMap<u64, Vec<Touch>>,
    renamed: FxHashMap<u64, (usize, Carried)>,
    accumulates: bool,
    passes: usize,
    in_blocks: bool,
}

/// Cuts a window into groups, in program order. Without `terms` what the program holds is stored.
pub(crate) fn plan<T: Clone>(window: Vec<Launch<T>>, rules: Rules, terms: Option<&Terms<'_, T>>) -> Vec<Group<T>> {
    if let [launch] = window.as_slice()
        && !rules.in_blocks
        && stores_all(launch)
    {
        return window.into_iter().map(alone).collect();
    }
    let mut groups = Vec::new();
    let mut draft: Option<Draft<T>> = None;
    let mut terms = terms.map(|terms| (terms, Coming::new(&window)));
    let mut window = window.into_iter().peekable();
    while let Some(mut launch) = window.next() {
        if let Some(stride) = window.peek().and_then(|next| row_stride_of_next(&launch, next)) {
            add_row_axis(&mut launch, stride);
        }
        let refusal = match &mut draft {
            None => "",
            Some(_) if !rules.joins => "fusion is off",
            Some(open) => match open.admit(&mut launch) {
                Ok(admission) => {
                    open.add(launch, admission);
                    continue;
                }
                Err(reason) => reason,
            },
        };
        let mut fresh = Draft::new(rules.in_blocks);
        if let Some(mut full) = draft.take() {
            if rules.joins {
                fresh = full.give_up_tail(&mut launch);
            }
            groups.push(full.close(refusal, &mut terms));
        }
        let admission = if fresh.members.is_empty() { Ok(Admission::default()) } else { fresh.admit(&mut launch) };
        match admission {
            Ok(admission) => fresh.add(launch, admission),
            Err(reason) => {
                groups.push(fresh.close(reason, &mut terms));
                fresh = Draft::new(rules.in_blocks);
                fresh.add(launch, Admission::default());
            }
        }
        draft = Some(fresh);
    }
    if let Some(full) = draft {
        groups.push(full.close("", &mut terms));
    }
    groups
}

/// Whether a launch that is a window by itself stores all that it makes: the program holds what is new, and the launch touches that
/// once.
fn stores_all<T>(launch: &Launch<T>) -> bool {
    let is_stored = |(index, operand): (usize, &Operand)| {
        let again = launch.operands[..index].iter().any(|other| Arc::ptr_eq(&other.field, &operand.field));
        operand.field.first_touch() < launch.sequence || (operand.field.is_held() && !again)
    };
    launch.sequence > 0 && launch.to_come == 0 && launch.operands.iter().enumerate().all(is_stored)
}

/// The group of a launch that stores all that it makes: what [`Draft::close`] makes of it, without the books that tell how others fit.
fn alone<T>(launch: Launch<T>) -> Group<T> {
    let mut buffers: Vec<Buffer> = Vec::with_capacity(launch.operands.len());
    let mut places = Vec::with_capacity(launch.operands.len());
    for operand in &launch.operands {
        let known = buffers.iter().position(|buffer| Arc::ptr_eq(&buffer.field, &operand.field));
        places.push(Place::Buffer(known.unwrap_or(buffers.len())));
        if known.is_none() {
            buffers.push(Buffer { field: operand.field.clone(), second: false, in_ring: false, carried: None });
        }
    }
    let serial = launch.work == Work::Accumulate && launch.folds_rows();
    let members = vec![Member { launch, shift: 0, pass: 0, places }];
    let mut group = whole_group(members, buffers, Vec::new(), Vec::new(), serial, "");
    if group.split == Split::Rows {
        group.merge_axes();
    }
    group
}

/// A group of members whose places are known.
fn whole_group<T>(
    members: Vec<Member<T>>,
    buffers: Vec<Buffer>,
    temporaries: Vec<usize>,
    owed: Vec<Owed<T>>,
    serial: bool,
    ended: &'static str,
) -> Group<T> {
    let rows = members.iter().map(|member| member.shift as usize + member.launch.rows()).max().unwrap_or(0);
    let only = &members[0].launch;
    let is_alone = only.work.is_alone();
    let split = if is_alone && only.work != Work::Whole {
        Split::Rows
    } else if is_alone || rows == 0 {
        Split::Single
    } else if serial {
        // A long enough first inner axis shares the columns out; otherwise the order is serial by nature.
        let mut operands = members.iter().flat_map(|member| &member.launch.operands);
        let is_free = operands.all(|o| !o.privilege.writes() || o.view.strides.get(1).is_some_and(|s| *s != 0));
        if only.domain.len() >= 2 && is_free { Split::Inner } else { Split::Single }
    } else {
        Split::Rows
    };
    Group { rows, grain: 1, members, buffers, temporaries, owed, split, serial, ended }
}

/// How a launch joins: its shift, whether it opens a new pass, and the field it writes to a second instance.
#[derive(Default)]
struct Admission {
    shift: isize,
    new_pass: bool,
    renames: Vec<(u64, Carried)>,
}

impl<T: Clone> Draft<T> {
    fn new(in_blocks: bool) -> Draft<T> {
        Draft {
            // Most windows that are waited for are short, and members take up much room.
            members: Vec::with_capacity(1),
            touches: FxHashMap::default(),
            renamed: FxHashMap::default(),
            accumulates: false,
            passes: 1,
            in_blocks,
        }
    }

    /// Takes off the last members whose results the refused launch works on, when they can lead the group that it starts:
    /// what they make is then still in cache for it. Returns the new group's first members.
    fn give_up_tail(&mut self, refused: &mut Launch<T>) -> Draft<T> {
        let mut wanted: Vec<u64> = refused.operands.iter().map(|operand| operand.field.number()).collect();
        let mut start = self.members.len();
        while start > 1 {
            let launch = &self.members[start - 1].launch;
            let makes_wanted = launch.work == Work::Map
                && launch.operands.iter().filter(|o| o.privilege.writes()).all(|o| {
                    let number = o.field.number();
                    wanted.contains(&number) && !self.renamed.contains_key(&number)
                });
            if !makes_wanted {
                break;
            }
            wanted.extend(launch.operands.iter().map(|operand| operand.field.number()));
            start -= 1;
        }
        let mut tail: Vec<Launch<T>> = self.members.split_off(start).into_iter().map(|member| member.launch).collect();
        if tail.is_empty() {
            return Draft::new(self.in_blocks);
        }
        let mut kept: Vec<Launch<T>> =
            std::mem::take(&mut self.members).into_iter().map(|member| member.launch).collect();
        // The tail must hold together and the refused launch fit behind it; what does not stays where it was.
        let led = loop {
            if tail.is_empty() {
                break Draft::new(self.in_blocks);
            }
            match Draft::build(tail, self.in_blocks) {
                Ok(led) if led.admit(refused).is_ok() => break led,
                Ok(led) => tail = led.members.into_iter().map(|member| member.launch).collect(),
                Err(launches) => tail = launches,
            }
            kept.push(tail.remove(0));
        };
        // A group's beginning fits together as it did before, so nothing comes back.
        if let Ok(shortened) = Draft::build(kept, self.in_blocks) {
            *self = shortened;
        }
        led
    }

    /// A draft of these launches in this order, or the launches if they do not fit together.
    fn build(launches: Vec<Launch<T>>, in_blocks: bool) -> Result<Draft<T>, Vec<Launch<T>>> {
        let mut draft = Draft::new(in_blocks);
        let mut rest = launches.into_iter();
        while let Some(mut launch) = rest.next() {
            let admission = if draft.members.is_empty() { Ok(Admission::default()) } else { draft.admit(&mut launch) };
            match admission {
                Ok(admission) => draft.add(launch, admission),
                Err(_) => {
                    let mut all: Vec<Launch<T>> = draft.members.into_iter().map(|member| member.launch).collect();
                    all.push(launch);
                    all.extend(rest);
                    return Err(all);
                }
            }
        }
        Ok(draft)
    }

    /// How a launch joins, or why it does not. One that writes a single row of a field whose other rows members write gets a row
    /// axis of length 1 where it joins as a row.
    fn admit(&self, launch: &mut Launch<T>) -> Result<Admission, &'static str> {
        if let Some(stride) = self.row_stride_of_members(launch) {
            add_row_axis(launch, stride);
            if let Ok(admission) = self.admit_as_it_is(launch) {
                return Ok(admission);
            }
            launch.domain.remove(0);
            launch.operands.iter_mut().for_each(|operand| _ = operand.view.strides.remove(0));
        }
        self.admit_as_it_is(launch)
    }

    fn admit_as_it_is(&self, launch: &Launch<T>) -> Result<Admission, &'static str> {
        let first = &self.members[0].launch;
        if [launch.work, first.work].iter().any(|work| work.is_alone()) {
            return Err("one side runs whole");
        }
        if self.members.len() >= MEMBERS_LIMIT {
            return Err("the group is full");
        }
        let (shift, misaligned) = self.align(launch)?;
        let rows = launch.rows();
        let mut renames = Vec::new();
        for number in misaligned {
            if self.renamed.contains_key(&number) {
                return Err("it overwrites rows that other tiles of the group read");
            }
            let operand = launch
                .operands
                .iter()
                .find(|o| o.field.number() == number && o.privilege.writes())
                .ok_or("it overwrites rows that other tiles of the group read")?;
            let field = &operand.field;
            if self.touches[&number].iter().any(|touch| touch.writes) {
                return Err("it overwrites rows that other tiles of the group read");
            }
            if operand.privilege != Privilege::Write {
                return Err("it keeps some of what it overwrites, and the group reads that elsewhere");
            }
            if field.is_pinned() || !field.is_owned() {
                return Err("it overwrites what the group reads, and an exported pointer holds the memory");
            }
            if launch.work != Work::Map || operand.view.covered_bytes(&launch.domain) * 2 < field.bytes() {
                return Err("it overwrites less than half of what the group reads");
            }
            match Carried::beside(&operand.view, &launch.domain) {
                Some(carried) => renames.push((number, carried)),
                None => return Err("it overwrites single elements of what the group reads"),
            }
        }
        let shift = match shift {
            Some(shift) => shift,
            None => {
                let base = &self.members[0];
                match self.shift_beside_written(launch) {
                    Some(shift) => shift,
                    None if base.launch.rows() == rows => base.shift,
                    None => self.shift_by_row_number(launch).ok_or("the number of rows differs")?,
                }
            }
        };
        let serial = self.accumulates || launch.folds_rows();
        let last = &self.members[self.members.len() - 1];
        let same_walk = last.shift == shift && last.launch.domain == launch.domain;
        let new_pass = !same_walk || self.needs_new_pass(launch, &renames);
        if self.in_blocks && new_pass {
            return Err("blocks are walked once, by members that agree on every element");
        }
        if serial && (new_pass || self.passes > 1) {
            return Err("a sum over the rows is alone in its pass");
        }
        if serial
            && (self.members.iter().any(|m| !matches!(m.launch.work, Work::Map | Work::Accumulate))
                || !matches!(launch.work, Work::Map | Work::Accumulate))
        {
            return Err("a sum over the rows is cut by columns");
        }
        if serial && launch.domain.len() < 2 {
            return Err("a sum over the rows is alone in its pass");
        }
        Ok(Admission { shift, new_pass, renames })
    }

    /// Whether a launch with the last pass's walk must wait until that pass has finished its chunk.
    fn needs_new_pass(&self, launch: &Launch<T>, renames: &[(u64, Carried)]) -> bool {
        for operand in &launch.operands {
            let number = operand.field.number();
            let Some(touches) = self.touches.get(&number) else { continue };
            let extent = operand.view.extent(&launch.domain);
            let renamed_now = operand.privilege.writes() && renames.iter().any(|(renamed, _)| *renamed == number);
            let renamed_by = self.renamed.get(&number).map_or(0, |(member, _)| *member);
            for touch in touches {
                let member = &self.members[touch.member];
                // Members before a renaming touch the other instance.
                if member.pass + 1 != self.passes || renamed_now || touch.member < renamed_by {
                    continue;
                }
                if !(operand.privilege.writes() || touch.writes) || !ranges_overlap(&extent, &touch.extent) {
                    continue;
                }
                if touch.writes && member.launch.work != Work::Map {
                    return true;
                }
                if member.launch.operands[touch.operand].view != operand.view {
                    return true;
                }
            }
        }
        false
    }

    fn add(&mut self, launch: Launch<T>, admission: Admission) {
        if admission.new_pass {
            self.passes += 1;
        }
        let member = self.members.len();
        for (number, carried) in admission.renames {
            self.renamed.insert(number, (member, carried));
        }
        for (index, operand) in launch.operands.iter().enumerate() {
            self.touches.entry(operand.field.number()).or_default().push(Touch {
                member,
                operand: index,
                writes: operand.privilege.writes(),
                shift: admission.shift,
                extent: operand.view.extent(&launch.domain),
                row_extent: operand.view.row_extent(&launch.domain),
            });
        }
        self.accumulates |= launch.work == Work::Accumulate && launch.folds_rows();
        let pass = self.passes - 1;
        self.members.push(Member { launch, shift: admission.shift, pass, places: Vec::new() });
    }

    fn close(mut self, ended: &'static str, terms: &mut Option<(&Terms<'_, T>, Coming)>) -> Group<T> {
        let low = self.members.iter().map(|m| m.shift).min().unwrap_or(0);
        self.members.iter_mut().for_each(|member| member.shift -= low);
        if let Some((_, coming)) = terms {
            self.members.iter().for_each(|member| coming.pass(&member.launch));
        }
        let (unstored, owed) = self.unstored(terms.as_ref().map(|(terms, coming)| (*terms, coming)));
        let mut buffers: Vec<Buffer> = Vec::new();
        let mut temporaries = Vec::new();
        let mut places: FxHashMap<(u64, bool), Place> = FxHashMap::default();
        let whole = self.members[0].launch.work.is_alone();
        let mut assigned: Vec<Vec<Place>> = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let mut row = Vec::new();
            for operand in &member.launch.operands {
                let number = operand.field.number();
                let second = match self.renamed.get(&number) {
                    Some((by, _)) => index > *by || (index == *by && operand.privilege.writes()),
                    None => false,
                };
                let place = *places.entry((number, second)).or_insert_with(|| {
                    let fleeting = !whole && unstored.contains(&number);
                    if fleeting {
                        temporaries.push(if member.launch.rows() == 1 {
                            operand.field.bytes()
                        } else {
                            operand.view.row_stride().unsigned_abs()
                        });
                        Place::Temporary(temporaries.len() - 1)
                    } else {
                        let carried = match self.renamed.get(&number) {
                            Some((_, carried)) if second => Some(carried.clone()),
                            Some(_) | None => None,
                        };
                        buffers.push(Buffer { field: operand.field.clone(), second, in_ring: false, carried });
                        Place::Buffer(buffers.len() - 1)
                    }
                });
                row.push(place);
            }
            assigned.push(row);
        }
        for (member, row) in self.members.iter_mut().zip(assigned) {
            member.places = row;
        }
        let mut group = whole_group(self.members, buffers, temporaries, owed, self.accumulates, ended);
        if group.split == Split::Rows && !self.in_blocks {
            group.merge_axes();
        }
        group
    }
}

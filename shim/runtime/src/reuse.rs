//! Reuse: a result takes over the memory of an operand that ends with its group, rather than fresh pages.
//!
//! Promises that this happens only where the pool has no block for the result, where every read of the operand is the very walk that
//! writes the result and comes no later, and where nobody can ask for the operand again. It moves no data; afterwards both operands
//! name one buffer, so that lowering sees that they share memory. The choice looks at liveness, so each shard makes its own, once the
//! group's share is decided and what it reads is here: layouts are as they would be, and nothing that is sent depends on it.

use crate::field::{Field, Sequence};
use crate::group::{Group, Member, Place};
use crate::launch::{Privilege, Work};
use crate::owed::Owed;
use crate::pool::Pool;

/// Gives results the memory of operands that end with the group, which repays the debts `repaid`.
pub(crate) fn take_over<T>(group: &mut Group<T>, repaid: &[Owed<T>], pool: &Pool) {
    let newest = group.members.iter().map(|member| member.launch.sequence).max().unwrap_or(0);
    for result in 0..group.buffers.len() {
        let field = &group.buffers[result].field;
        let is_fresh = !group.buffers[result].second && !field.has_instance() && !field.is_pinned();
        if !is_fresh || pool.has_block(field.bytes()) {
            continue;
        }
        let Some(writer) = writer(group, result) else { continue };
        let ends = |index: &usize| {
            let operand = &group.buffers[*index].field;
            ends_with(operand, newest, repaid)
                && group.buffers.iter().filter(|buffer| buffer.field.number() == operand.number()).count() == 1
                && !group.owed.iter().any(|owed| owed.is_made_from(operand.number()))
                && group.buffers[*index].field.bytes() == field.bytes()
                && is_read_alike(group, *index, writer)
        };
        let Some(operand) = (0..group.buffers.len()).find(ends) else { continue };
        if let Some(block) = group.buffers[operand].field.give_up() {
            drop(field.swap(block));
        }
        for member in &mut group.members {
            for place in member.places.iter_mut().filter(|place| **place == Place::Buffer(operand)) {
                *place = Place::Buffer(result);
            }
        }
        group.buffers[operand].field = group.buffers[result].field.clone();
    }
}

/// Whether nobody can ask for a field after launch `newest`, with which debts are repaid, and its memory came from the pool.
fn ends_with<T>(field: &Field, newest: Sequence, repaid: &[Owed<T>]) -> bool {
    let debtors = repaid.iter().filter(|entry| entry.is_made_from(field.number())).count();
    !field.is_held()
        && field.last_touch() <= newest
        && !field.is_pinned()
        && field.has_instance()
        && field.is_owned()
        && !field.is_owed()
        && !field.is_watched()
        && field.debtors() == debtors
        && !field.was_owed()
}

/// The first member that touches a result, and the operand, where it overwrites all of it element by element.
fn writer<T>(group: &Group<T>, result: usize) -> Option<(usize, usize)> {
    let touches = |member: &Member<T>| member.places.iter().position(|place| *place == Place::Buffer(result));
    let (index, operand) =
        group.members.iter().enumerate().find_map(|(index, member)| Some((index, touches(member)?)))?;
    let launch = &group.members[index].launch;
    let written = &launch.operands[operand];
    let is_whole = launch.work == Work::Map
        && written.privilege == Privilege::Write
        && written.view.covered_bytes(&launch.domain) == written.field.bytes();
    is_whole.then_some((index, operand))
}

/// Whether all that members do with an operand is to read it, up to the writer, in the writer's own walk.
fn is_read_alike<T>(group: &Group<T>, operand: usize, (writer, written): (usize, usize)) -> bool {
    let wanted = &group.members[writer];
    let view = &wanted.launch.operands[written].view;
    group.members.iter().enumerate().all(|(index, member)| {
        member.places.iter().zip(&member.launch.operands).filter(|row| *row.0 == Place::Buffer(operand)).all(|row| {
            index <= writer
                && row.1.privilege == Privilege::Read
                && row.1.view == *view
                && member.launch.domain == wanted.launch.domain
                && member.shift == wanted.shift
        })
    })
}

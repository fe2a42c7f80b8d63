//! Owed fields: large results that the program still holds, which no later launch has asked for, and which are cheap to make again.
//!
//! A group that makes and uses such a result need not store it: programs leave many a large intermediate in a variable that is
//! never looked at again. What made it is kept instead - a few maps of fields that have not changed since - and joins the next
//! launch that reads the result, or comes before the next one that changes what it was made from; the second time it is stored, unless
//! making it costs less than reading it would.
//! Repeated launches have sequence 0: their events were told the first time. `fuse` asks here what may stay unstored; the executor
//! settles debts. What costs more to make again than to read is owed as long as nobody asks for such results (`regrets`).
//!
//! What is stored may depend on what the program still holds, which shards see at different moments; what is sent must not. So with
//! several shards a result is owed only where each of them can make its part again by itself (`executor::apart`), and it is made
//! before the window that asks for it, apart from the window's groups.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::field::{Field, Sequence};
use crate::group::Group;
use crate::launch::{Effort, Launch, Operand, Privilege, Work};
use crate::regrets::{Kind, Regrets};
use crate::shards::share::Share;

/// Longest recipe: past this a result is not cheap to make again.
pub(crate) const RECIPE_LIMIT: usize = 8;

/// Most launches that cost less than reading what they make, where they read next to nothing.
const NEXT_TO_NOTHING: usize = 3;

/// How many times smaller a source is than the result for which it may be kept, or stored after all.
const SMALL: usize = 32;

/// What fuse needs to know to leave results unstored.
pub(crate) struct Terms<'a, T> {
    /// Shortest field worth it.
    pub(crate) least_bytes: usize,
    /// What it costs to do a task again.
    pub(crate) effort: &'a dyn Fn(&T) -> Effort,
    /// Whether results of a kind are to be stored.
    pub(crate) regrets: &'a dyn Fn(Kind) -> bool,
    /// Whether results may be made from what their own group stores. With several shards that has no layout yet.
    pub(crate) keeps_made: bool,
}

/// How often the launches of a window that are not in a group yet change each field: what was made from such a field is changed
/// under it before any later window could settle the debt.
pub(crate) struct Coming(FxHashMap<u64, usize>);

impl Coming {
    pub(crate) fn new<T>(window: &[Launch<T>]) -> Coming {
        let mut counts = FxHashMap::default();
        for field in window.iter().flat_map(changed) {
            *counts.entry(field).or_default() += 1;
        }
        Coming(counts)
    }

    /// Takes a launch that a group has got.
    pub(crate) fn pass<T>(&mut self, launch: &Launch<T>) {
        for field in changed(launch) {
            self.0.entry(field).and_modify(|count| *count -= 1);
        }
    }

    pub(crate) fn change(&self, field: u64) -> bool {
        self.0.get(&field).is_some_and(|count| *count > 0)
    }
}

/// The numbers of the fields that a launch changes, once for each operand.
fn changed<T>(launch: &Launch<T>) -> impl Iterator<Item = u64> {
    launch.operands.iter().filter(|operand| operand.privilege.writes()).map(|operand| operand.field.number())
}

/// A result that was not stored, and how to make it.
pub(crate) struct Owed<T> {
    pub(crate) field: Arc<Field>,
    /// The launches that make it, in order.
    pub(crate) recipe: Vec<Launch<T>>,
    /// The fields that they read and do not make.
    pub(crate) sources: Vec<Arc<Field>>,
    /// Of what kind it is, if it would as well be stored.
    pub(crate) kind: Option<Kind>,
    /// With several shards: what this one runs in the place of the recipe.
    pub(crate) apart: Option<Box<(Group<T>, Share)>>,
}

impl<T> Owed<T> {
    /// Whether making it costs less than reading it would.
    pub(crate) fn is_next_to_nothing(&self) -> bool {
        let is_small = |source: &Arc<Field>| source.bytes() <= self.field.bytes() / SMALL;
        self.kind.is_none() && self.recipe.len() <= NEXT_TO_NOTHING && self.sources.iter().all(is_small)
    }

    /// Whether it is made from the field of that number.
    pub(crate) fn is_made_from(&self, field: u64) -> bool {
        self.sources.iter().any(|source| source.number() == field)
    }
}

/// The results that are owed now.
pub(crate) struct Ledger<T>(Mutex<Books<T>>);

struct Books<T> {
    open: Vec<Owed<T>>,
    /// What launches that have not run yet make: a program that looks at a field still sees that it is not settled.
    due: Vec<Owed<T>>,
    regrets: Regrets,
}

impl<T> Books<T> {
    /// Takes the entry of a field, which is asked for.
    fn call(&mut self, field: &Arc<Field>) -> Option<Owed<T>> {
        let entry = take(&mut self.open, field)?;
        entry.kind.into_iter().for_each(|kind| self.regrets.note(kind, true));
        Some(entry)
    }
}

impl<T: Clone> Ledger<T> {
    pub(crate) fn new() -> Ledger<T> {
        Ledger(Mutex::new(Books { open: Vec::new(), due: Vec::new(), regrets: Regrets::default() }))
    }

    /// Strikes the debts that a group that has run repays, and enters the results that it owes. What remains owed is so all the time.
    pub(crate) fn close(&self, repaid: Vec<Owed<T>>, owed: Vec<Owed<T>>) {
        for entry in &owed {
            entry.field.owe(true);
            entry.sources.iter().for_each(|source| source.count_debtor(true));
        }
        for entry in repaid {
            if owed.iter().any(|again| Arc::ptr_eq(&again.field, &entry.field)) {
                entry.sources.iter().for_each(|source| source.count_debtor(false));
            } else {
                strike(entry);
            }
        }
        self.0.lock().open.extend(owed);
    }

    /// Forgets what nobody can ask for any more, when all launches up to `completed` have run.
    pub(crate) fn forget(&self, completed: Sequence) {
        let Books { open: entries, regrets, .. } = &mut *self.0.lock();
        // What is forgotten may free what it was made from, which may be owed too.
        loop {
            let gone = |entry: &Owed<T>| {
                !entry.field.is_held() && entry.field.last_touch() <= completed && !entry.field.has_debtors()
            };
            let Some(position) = entries.iter().position(gone) else { return };
            let entry = entries.swap_remove(position);
            entry.kind.into_iter().for_each(|kind| regrets.note(kind, false));
            strike(entry);
        }
    }

    /// Whether results of a kind are to be stored.
    pub(crate) fn regrets(&self, kind: Kind) -> bool {
        self.0.lock().regrets.know(kind)
    }

    /// The launches of a window, with those before them that make what they read, or need what they change.
    pub(crate) fn settle(&self, window: Vec<Launch<T>>) -> Vec<Launch<T>> {
        let books = &mut *self.0.lock();
        if books.open.is_empty() {
            return window;
        }
        let mut settled = Vec::with_capacity(window.len() + RECIPE_LIMIT);
        for launch in window {
            for operand in &launch.operands {
                if is_replaced(&launch, operand) && operand.field.is_owed() && !operand.field.has_debtors() {
                    take(&mut books.open, &operand.field).into_iter().for_each(strike);
                } else {
                    repay(books, &operand.field, &mut settled);
                }
                if operand.privilege.writes() {
                    while let Some(field) = debtor(&books.open, &operand.field) {
                        repay(books, &field, &mut settled);
                    }
                }
            }
            settled.push(launch);
        }
        settled
    }

    /// The results to be made before a window that reads them, or changes what they were made from, those that others are made from
    /// first.
    pub(crate) fn due(&self, window: &[Launch<T>]) -> Vec<Owed<T>> {
        let books = &mut *self.0.lock();
        let mut due = Vec::new();
        for (launch, operand) in window.iter().flat_map(|launch| launch.operands.iter().map(move |own| (launch, own))) {
            if books.open.is_empty() {
                break;
            }
            if is_replaced(launch, operand) && !operand.field.has_debtors() {
                take(&mut books.open, &operand.field).into_iter().for_each(strike);
            }
            call_in(books, &operand.field, operand.privilege.writes(), &mut due);
        }
        due
    }

    /// As [`Ledger::due`], for a program that looks at a field, and may change it.
    pub(crate) fn due_for(&self, field: &Arc<Field>, changes: bool) -> Vec<Owed<T>> {
        let mut due = Vec::new();
        call_in(&mut self.0.lock(), field, changes, &mut due);
        due
    }

    /// The debts that the launches of a group repay, to be struck once it has run.
    pub(crate) fn repaid<'a>(&self, launches: impl Iterator<Item = &'a Launch<T>>) -> Vec<Owed<T>>
    where
        T: 'a,
    {
        let due = &mut self.0.lock().due;
        if due.is_empty() {
            return Vec::new();
        }
        let last = launches.filter(|launch| launch.to_come == 1);
        let made = last.flat_map(|launch| &launch.operands).filter(|operand| operand.privilege.writes());
        made.filter_map(|operand| take(due, &operand.field)).collect()
    }
}

/// Takes the entries that make a field and, where it changes, those made from it; what they are made from first.
fn call_in<T>(books: &mut Books<T>, field: &Arc<Field>, changes: bool, due: &mut Vec<Owed<T>>) {
    if let Some(entry) = books.call(field) {
        for source in &entry.sources {
            call_in(books, source, false, due);
        }
        due.push(entry);
    }
    while let Some(made) = debtor(&books.open, field).filter(|_| changes) {
        call_in(books, &made, false, due);
    }
}

/// Whether a launch writes all of an operand's field without a look at what was there.
fn is_replaced<T>(launch: &Launch<T>, operand: &Operand) -> bool {
    let reads = |other: &Operand| Arc::ptr_eq(&other.field, &operand.field) && other.privilege != Privilege::Write;
    operand.view.covered_bytes(&launch.domain) == operand.field.bytes() && !launch.operands.iter().any(reads)
}

/// A result that was made from a field.
fn debtor<T>(entries: &[Owed<T>], source: &Arc<Field>) -> Option<Arc<Field>> {
    let found = entries.iter().find(|entry| entry.sources.iter().any(|field| Arc::ptr_eq(field, source)));
    found.map(|entry| entry.field.clone())
}

fn take<T>(entries: &mut Vec<Owed<T>>, field: &Arc<Field>) -> Option<Owed<T>> {
    let position = entries.iter().position(|entry| Arc::ptr_eq(&entry.field, field))?;
    Some(entries.swap_remove(position))
}

/// Ends a debt.
pub(crate) fn strike<T>(entry: Owed<T>) {
    entry.field.owe(false);
    entry.sources.iter().for_each(|source| source.count_debtor(false));
}

/// Appends the launches that make a field, if it is owed.
fn repay<T>(books: &mut Books<T>, field: &Arc<Field>, settled: &mut Vec<Launch<T>>) {
    if !field.is_owed() {
        return;
    }
    let Some(mut entry) = books.call(field) else { return };
    let recipe = std::mem::take(&mut entry.recipe);
    books.due.push(entry);
    for launch in &recipe {
        for operand in launch.operands.iter().filter(|operand| operand.privilege == Privilege::Read) {
            repay(books, &operand.field, settled);
        }
    }
    settled.extend(recipe);
}

/// What a result that launch `made` of a group makes would owe; `None` if making it again costs too much. `maker` tells which launch,
/// if only one, makes a field that is not stored; `changes` whether the group changes a field that the result is made from, or a later
/// one of its window does. Where the terms allow it, small fields that would not be stored are among the sources.
pub(crate) fn owe<T: Clone>(
    launches: &[&Launch<T>],
    made: usize,
    terms: &Terms<'_, T>,
    maker: &dyn Fn(u64) -> Option<usize>,
    changes: &dyn Fn(u64) -> bool,
) -> Option<Owed<T>> {
    let result = &launches[made].operands.iter().find(|operand| operand.privilege.writes())?.field;
    let is_small = |field: &Field| field.bytes() <= result.bytes() / SMALL;
    let effort_of = |launch: &Launch<T>| {
        let plain = launch.work == Work::Map
            && launch.operands.iter().filter(|operand| operand.privilege.writes()).count() == 1
            && launch.operands.iter().all(|operand| operand.privilege != Privilege::ReadWrite);
        if plain { (terms.effort)(&launch.task) } else { Effort::More }
    };
    let mut effort = Effort::Reading;
    let mut needed = vec![made];
    let mut sources: Vec<Arc<Field>> = Vec::new();
    let mut kept_bytes = 0;
    let mut next = 0;
    while let Some(index) = needed.get(next).copied() {
        next += 1;
        let launch = launches[index];
        effort = effort.max(effort_of(launch));
        if effort == Effort::More || needed.len() > RECIPE_LIMIT {
            return None;
        }
        for operand in launch.operands.iter().filter(|operand| operand.privilege == Privilege::Read) {
            let field = &operand.field;
            let by_launch = maker(field.number());
            let is_kept =
                |index: usize| terms.keeps_made && is_small(field) && effort_of(launches[index]) == Effort::More;
            if let Some(index) = by_launch.filter(|index| !is_kept(*index)) {
                if !needed.contains(&index) {
                    needed.push(index);
                }
                continue;
            }
            if by_launch.is_none() && changes(field.number()) || field.is_pinned() {
                return None;
            }
            if !sources.iter().any(|source| Arc::ptr_eq(source, field)) {
                kept_bytes += if is_small(field) { 0 } else { field.bytes() };
                sources.push(field.clone());
            }
        }
    }
    // What is kept is no more than what is not stored.
    if kept_bytes > result.bytes() {
        return None;
    }
    needed.sort_unstable();
    let kind = (effort == Effort::Storing).then(|| Kind::of(needed.iter().map(|index| launches[*index])));
    if kind.is_some_and(terms.regrets) {
        return None;
    }
    let count = needed.len();
    let repeated = needed.iter().enumerate().map(|(place, index)| {
        let launch = launches[*index];
        Launch {
            sequence: 0,
            to_come: count - place,
            name: launch.name.clone(),
            work: launch.work,
            domain: launch.domain.clone(),
            operands: launch.operands.clone(),
            task: launch.task.clone(),
        }
    });
    Some(Owed { field: result.clone(), recipe: repeated.collect(), sources, kind, apart: None })
}
